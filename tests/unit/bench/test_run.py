from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.bench.data.shipped import shipped
from gcmem.bench.data.streams import Texts
from gcmem.bench.run.grid import PATHS, PRESETS, Grid, change, load_grid, preset
from gcmem.bench.run.memories import BenchMemory, set_hash
from gcmem.bench.run.outcomes import Outcome, Run, load_run
from gcmem.bench.run.product import product_defaults
from gcmem.bench.run.readers import CachedChat, MajorityReader
from gcmem.bench.run.runner import run_grid, spread
from gcmem.bench.run.scoring import contains_answer
from gcmem.bench.theory.thresholds import threshold_rows
from gcmem.errors import InvalidInputError, ModelUnavailableError
from gcmem.protocols import ConflictOracle, Reader, ScoreCache
from gcmem.settings import Settings
from gcmem.testing import HashEncoder, RuleOracle, ScriptedChat
from gcmem.types import Chunk, Prompt, Reading

SMALL = Grid(
    settings=("retrieval", "bag"), readers=("majority",), oracles=("gold",), limit=3, paths=PATHS
)


def no_oracle(name: str, cache: ScoreCache | None) -> ConflictOracle:
    return RuleOracle(lambda a, b: False)


def run(
    out: Path, grid: Grid = SMALL, readers: dict[str, Reader | None] | None = None, jobs: int = 1
) -> Run:
    return run_grid(
        grid,
        out=out,
        load=shipped,
        texts=Texts(HashEncoder(dimensions=64)),
        readers=readers or {"majority": None},
        make_oracle=no_oracle,
        jobs=jobs,
    )


def by(done: Run, **wanted: str) -> list[Outcome]:
    return [
        o for o in done.outcomes if all(getattr(o.condition, k) == v for k, v in wanted.items())
    ]


def test_every_path_of_an_instance_reads_one_frozen_set(tmp_path: Path) -> None:
    done = run(tmp_path)
    for instance in {o.instance for o in done.outcomes}:
        for retrieval in ("dense", "paper", "stratified", "none"):
            own = [o for o in by(done, retrieval=retrieval) if o.instance == instance]
            assert len(own) == len(PATHS)
            assert len({o.candidate_hash for o in own}) == 1


def test_a_perfect_oracle_recovers_what_the_majority_gets_wrong(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert not any(o.correct for o in by(done, setting="bag", path="standard"))
    gold = by(done, setting="bag", path="gcmem")
    assert all(o.correct for o in gold)
    assert {o.keep_rate for o in gold} == {1.0}
    assert {o.stale_removed for o in gold} == {1.0}
    assert all(o.stale for o in by(done, setting="bag", path="standard"))


def test_a_run_resumes_and_repeats_nothing(tmp_path: Path) -> None:
    first = run(tmp_path)
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    (tmp_path / "results.jsonl").write_text("\n".join(lines[:7]) + '\n{"cut off', "utf-8")
    again = run(tmp_path)
    assert len(again.outcomes) == len(first.outcomes)
    assert {(o.condition, o.instance, o.choice) for o in again.outcomes} == {
        (o.condition, o.instance, o.choice) for o in first.outcomes
    }
    about = json.loads((tmp_path / "run.json").read_text())
    assert {"grid", "commit", "packages", "encoder", "started"} <= about.keys()
    assert about["product_defaults"] == product_defaults()
    assert about["memory_settings"]["chunk_tokens"] == Settings().chunk_tokens
    assert load_run(tmp_path).about["gcmem"]


class Broken:
    id = "broken"

    def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
        raise ModelUnavailableError("gone fishing")


def test_an_error_is_recorded_and_does_not_end_the_run(tmp_path: Path) -> None:
    grid = replace(SMALL, readers=("majority", "broken"), paths=("standard",))
    done = run(tmp_path, grid, {"majority": None, "broken": Broken()}, jobs=2)
    assert {o.error for o in by(done, reader="broken")} == {"ModelUnavailableError: gone fishing"}
    assert not any(o.error for o in by(done, reader="majority"))


def test_usage_counts_what_was_retrieved_along_the_way() -> None:
    instance = shipped("chat-medium")[0]
    memory = BenchMemory.of(instance, Texts(HashEncoder(dimensions=64)))
    counts = memory.usage(5)
    newest = [t.id for t in instance.of_kind("new")]
    assert counts.total() == 30
    assert sum(counts[i] for i in newest) < counts.total() / 4
    first = memory.candidates("retrieval", "dense", 5)
    assert memory.candidates("retrieval", "dense", 5) is first
    assert set_hash(first) != set_hash(memory.candidates("bag", "none", 0))
    memory.close()


def test_the_majority_reader_is_the_theorems_model() -> None:
    instance = shipped("chat-medium")[0]
    states = {turn.id: turn.state for turn in instance.turns}
    memory = BenchMemory.of(instance, Texts(HashEncoder(dimensions=64)))
    chunks = {c.id: c for c in memory.chunks}
    old = [chunks[t.id] for t in instance.of_kind("old")][:2]
    new = [chunks[t.id] for t in instance.of_kind("new")][:1]
    reader = MajorityReader(states, instance.answer)

    def choice(*picked: Chunk) -> str | None:
        prompt = Prompt(question="?", chunks=picked, options=instance.options, mode="forced-choice")
        return reader.read([prompt])[0].choice

    assert choice(*new) == instance.answer
    assert choice(old[0], *new) != instance.answer  # a tie is stale
    assert choice(*old, *new) != instance.answer
    assert choice() is None
    memory.close()


LONG = " ".join(f"On day {n} the walk along the river was pleasant." for n in range(60))


def moved(*, dated: bool = True, new_id: str = "new") -> Instance:
    """Returns an instance whose old turn is too long for one chunk."""
    start = datetime(2500, 1, 1, tzinfo=UTC) if dated else None
    said = (("old", f"I live in Lyon. {LONG}"), (new_id, "I live in Oslo."))
    return Instance(
        id="moved",
        family="city",
        question="Where does the user live?",
        turns=tuple(
            BenchTurn(
                id=turn_id,
                text=text,
                kind="old" if turn_id == "old" else "new",
                at=start and start + timedelta(days=n),
                state="Lyon" if turn_id == "old" else "Oslo",
                recorded=n,
            )
            for n, (turn_id, text) in enumerate(said)
        ),
        options=("Lyon", "Oslo"),
        answer="Oslo",
        conflicts=(("old", new_id),),
    )


def run_one(out: Path, instance: Instance, **changes: tuple[str, ...]) -> list[Outcome]:
    done = run_grid(
        replace(SMALL, **changes),  # type: ignore[arg-type]
        out=out,
        load=lambda name: [instance],
        texts=Texts(HashEncoder(dimensions=64)),
        readers={"majority": None},
        make_oracle=no_oracle,
    )
    return list(done.outcomes)


def test_a_long_turn_is_split_as_in_the_product_and_scored_as_one_turn(tmp_path: Path) -> None:
    memory = BenchMemory.of(moved(), Texts(HashEncoder(dimensions=64)))
    assert len(memory.chunks) > 2
    assert set(memory.turn_of.values()) == {"old", "new"}
    assert len(memory.conflicts) == len(memory.chunks) - 1
    memory.close()
    for outcome in run_one(tmp_path, moved(), paths=("gcmem",)):
        assert outcome.correct
        assert outcome.recall_old == outcome.recall_new == 1
        assert (outcome.true_positives, outcome.false_positives) == (1, 0)
        assert outcome.shadows == outcome.candidates - 1


def test_turns_without_a_time_are_not_ordered(tmp_path: Path) -> None:
    outcomes = run_one(tmp_path, replace(moved(dated=False), ordered=False))
    assert len(outcomes) == 4 * len(PATHS)
    assert {(o.shadows, o.error) for o in outcomes} == {(0, "")}


def test_an_instance_that_cannot_be_added_is_an_error(tmp_path: Path) -> None:
    outcomes = run_one(tmp_path, moved(new_id="old.2"), paths=("standard",))
    assert len(outcomes) == 4
    assert all("exists already" in outcome.error for outcome in outcomes)


def test_replies_of_a_model_are_kept(tmp_path: Path) -> None:
    chat = ScriptedChat([{"answer": "a"}])
    cached = CachedChat(chat, tmp_path)
    ask = {"system": "s", "user": "u", "schema": {"type": "object"}}
    first, _ = cached.complete(**ask)  # type: ignore[arg-type]
    again, tokens = cached.complete(**ask)  # type: ignore[arg-type]
    assert first == again == {"answer": "a"}
    assert tokens == 0
    assert len(chat.requests) == 1


def test_grids_come_from_presets_and_yaml(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("preset: paper-bof\nreaders: [majority]\nlimit: 2\n")
    grid = load_grid(path)
    assert grid.settings == ("bag",)
    assert grid.limit == 2
    assert len(list(grid.conditions("chat-large"))) == 2 * 4
    for text in ("[]", "colour: red", "preset: none", "paths: [magic]", "{"):
        path.write_text(text)
        with pytest.raises(InvalidInputError):
            load_grid(path)
    assert all(list(preset(name).conditions("x")) for name in PRESETS)
    assert change(SMALL, {"ks": [5, 20]}).ks == (5, 20)


def test_limits_are_spread_over_the_dataset() -> None:
    instances: Sequence[Instance] = shipped("chat-medium")
    assert [i.id for i in spread(instances, 3)] == [instances[n].id for n in (0, 16, 32)]
    assert spread(instances, None) is instances


@pytest.mark.parametrize(
    ("text", "answer", "found"),
    [("It is Lyon, now.", "lyon", True), ("Lyonnais", "Lyon", False), ("x", "", False)],
)
def test_free_text_is_right_if_it_holds_the_answer(text: str, answer: str, found: bool) -> None:
    assert contains_answer(text, answer) is found


def test_a_worse_oracle_gives_worse_answers_and_loses_what_is_true() -> None:
    texts = Texts(HashEncoder(dimensions=64))
    rows = threshold_rows(texts, shipped("chat-medium")[:8], steps=(0.2, 1.0))
    found = {(row.precision, row.recall): row for row in rows}
    assert found[1.0, 1.0].accuracy == found[1.0, 1.0].keep_rate == 1
    assert found[1.0, 0.2].accuracy < 1
    assert found[0.2, 1.0].keep_rate < 0.9
