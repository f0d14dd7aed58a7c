"""The generation of a pool with a real model on loopback: what it writes is beside the point."""

from __future__ import annotations

import json
from pathlib import Path

from gcmem.bench.data.generate import MAX_CHARS, generate_pool
from gcmem.bench.data.pool import load_families
from gcmem.bench.data.wording import LabelCheck
from tests.processes.conftest import Connect

STATES = ("meat eater", "vegan")


def test_a_real_model_writes_and_rates_a_pool(
    connect: Connect, small_model: str, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.json"
    family = {
        "family": "diet",
        "attribute": "what the person eats",
        "states": STATES,
        "questions": ["What does the user eat?"],
    }
    spec.write_text(json.dumps([family]), "utf-8")
    # Few tokens: a model this small fills a list until it is stopped, which is then malformed.
    writer = connect(model="writer", base_url=small_model, max_tokens=64, temperature=0.7)
    rater = connect(model="rater", base_url=small_model, max_tokens=32)
    out = tmp_path / "pool.jsonl"
    seen: list[tuple[int, int]] = []

    def run(budget_tokens: int) -> tuple[object, ...]:
        report = generate_pool(
            spec,
            generator=writer,
            rater=rater,
            out=out,
            per_state=2,
            cache=tmp_path / "cache",
            budget_tokens=budget_tokens,
            progress=lambda done, total: seen.append((done, total)),
        )
        (made,) = load_families(out)
        assert tuple(made.states) == STATES
        for state in report.states:
            lines = made.states[state.state]
            assert len(lines) == state.accepted <= 2
            check = LabelCheck(state.state, states=STATES)
            assert all(line.text and len(line.text) <= MAX_CHARS for line in lines)
            assert not any(check.names(line.text) for line in lines)
        assert report.complete == (report.accepted == 4)
        assert all(done <= total == 4 for done, total in seen)
        kept = len(list((tmp_path / "cache").rglob("*.json")))
        assert report.calls + report.cached_calls >= kept
        return report.ended, report.states, report.malformed, report.calls, report.tokens

    *first, calls, tokens = run(budget_tokens=2500)
    assert calls
    assert tokens
    pool = out.read_bytes()
    assert run(budget_tokens=0) == (*first, 0, 0)  # everything comes from the cache
    assert out.read_bytes() == pool
