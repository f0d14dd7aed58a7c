"""Labelled pairs and sets for `gcmem qualify`, from any dataset."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.private_files import make_private_file, make_private_folder

PER_INSTANCE = 4


def pairs(instances: Sequence[Instance], *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yields pairs by category: old/new, same state, distractor, invariant, other entity."""
    rng = random.Random(seed)
    for instance in instances:
        by_id = {turn.id: turn for turn in instance.turns}
        gold = list(instance.conflicts)
        for older, newer in rng.sample(gold, min(PER_INSTANCE, len(gold))):
            yield _pair(instance, by_id[older], by_id[newer], conflict=True, category="old/new")
        if not instance.ordered:
            continue
        for category, one, other in _others(instance, rng):
            yield _pair(instance, one, other, conflict=False, category=category)


def _others(instance: Instance, rng: random.Random) -> Iterator[tuple[str, BenchTurn, BenchTurn]]:
    new = [t for t in instance.of_kind("new") if t.role == "user"] or list(instance.of_kind("new"))
    if not new:
        return
    same = [t for t in instance.turns if t.kind == "new"]
    old = list(instance.of_kind("old"))
    groups = {
        "same state": [(a, b) for a, b in pairwise(old) if a.state == b.state]
        + list(pairwise(same)),
        "distractor": [(t, rng.choice(new)) for t in instance.of_kind("distractor")],
        "invariant": [(t, rng.choice(new)) for t in instance.of_kind("invariant")],
        "other entity": [(t, rng.choice(new)) for t in instance.of_kind("other")],
    }
    for category, found in groups.items():
        for one, other in rng.sample(found, min(PER_INSTANCE, len(found))):
            yield category, one, other


def _pair(
    instance: Instance, one: BenchTurn, other: BenchTurn, *, conflict: bool, category: str
) -> dict[str, Any]:
    older, newer = sorted((one, other), key=lambda t: (t.at is not None, t.at, t.recorded))
    return {
        "question": instance.question,
        "older": older.text,
        "newer": newer.text,
        "conflict": conflict,
        "category": category,
    }


def sets(instances: Sequence[Instance]) -> Iterator[dict[str, Any]]:
    """Yields whole memories with their gold conflicts and the ids that must be kept."""
    for instance in instances:
        if not instance.ordered:
            continue
        yield {
            "question": instance.question,
            "options": list(instance.options) or None,
            "turns": [
                {
                    "id": turn.id,
                    "at": None if turn.at is None else turn.at.isoformat(),
                    "speaker": turn.speaker,
                    "text": turn.text,
                }
                for turn in sorted(instance.turns, key=lambda t: t.recorded)
            ],
            "conflicts": [list(pair) for pair in instance.conflicts],
            "must_keep": list(instance.must_keep),
        }


def write_jsonl(rows: Iterator[dict[str, Any]], path: Path) -> int:
    """Writes the rows as JSONL and returns their number."""
    make_private_folder(path.parent)
    make_private_file(path)
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count
