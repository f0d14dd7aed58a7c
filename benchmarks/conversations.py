"""Measures search on real conversations: evidence found, turns removed, and time.

    python benchmarks/conversations.py --locomo locomo10.json --longmemeval longmemeval_oracle.json

Reads the published files, or JSON lines with the same fields (.jsonl, .jsonl.xz). Prints for each
set the evidence in the top ten before and after resolution, the evidence and outdated turns that
resolution removed, and the milliseconds per search. All settings are the product's defaults. No
reader is used.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from gcmem import Memory, Turn
from gcmem.bench.data.datasets import locomo, longmemeval
from gcmem.bench.data.instances import Instance

K = 10
LOADERS = {"locomo": locomo.load, "longmemeval": longmemeval.load}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The result of one question; counts are numbers of turns."""

    evidence: int
    found_plain: int
    found: int
    evidence_removed: int
    outdated_plain: int
    outdated: int
    ms: float


def ask(memory: Memory, instance: Instance) -> Asked:
    """Searches once and compares the top ten before and after resolution."""
    evidence = {turn.id for turn in instance.of_kind("new")}
    outdated = {turn.id for turn in instance.of_kind("old")}
    started = time.perf_counter()
    result = memory.search(instance.question, k=K, user_id="user")
    spent_ms = (time.perf_counter() - started) * 1000
    plain = {item.chunk.metadata["turn"] for item in result.candidates.items[:K]}
    kept = {item.chunk.metadata["turn"] for item in result.kept}
    removed = {shadow.candidate.chunk.metadata["turn"] for shadow in result.shadows}
    return Asked(
        evidence=len(evidence),
        found_plain=len(evidence & plain),
        found=len(evidence & kept),
        evidence_removed=len(evidence & plain & removed - kept),
        outdated_plain=len(outdated & plain),
        outdated=len(outdated & kept),
        ms=spent_ms,
    )


def measure(instances: Iterable[Instance]) -> Iterator[Asked]:
    """Asks every question in a memory with only its conversation."""
    # Questions of one conversation are adjacent; they differ only in their evidence.
    for _, group in groupby(instances, key=lambda i: [turn.text for turn in i.turns]):
        questions = list(group)
        with Memory(":memory:") as memory:
            memory.add(
                [
                    Turn(
                        text=turn.text, at=turn.at, speaker=turn.speaker, metadata={"turn": turn.id}
                    )
                    for turn in questions[0].turns
                ],
                user_id="user",
            )
            for instance in questions:
                yield ask(memory, instance)


def summary(asked: list[Asked]) -> dict[str, float]:
    """Returns totals and search times over all questions."""
    total = {name: sum(asdict(a)[name] for a in asked) for name in asdict(asked[0]) if name != "ms"}
    times = sorted(a.ms for a in asked)
    return {
        "questions": len(asked),
        **total,
        "p50_ms": round(statistics.median(times)),
        "p95_ms": round(times[int(len(times) * 0.95)]),
    }


def main() -> None:
    """Measures the sets given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    for name in LOADERS:
        parser.add_argument(f"--{name}", type=Path, metavar="FILE")
    parser.add_argument("--questions", type=int, default=100, help="questions drawn from each set")
    parser.add_argument("--updates", action="store_true", help="only questions about an update")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name, load in LOADERS.items():
        path = getattr(args, name)
        if path is None:
            continue
        instances = [i for i in load(path) if i.of_kind("new")]
        if args.updates:
            instances = [i for i in instances if i.of_kind("old")]
        drawn = sorted(
            random.Random(args.seed).sample(
                range(len(instances)), min(args.questions, len(instances))
            )
        )
        found = list(measure(instances[n] for n in drawn)) if drawn else []
        print(json.dumps({"set": name, **(summary(found) if found else {"questions": 0})}))


if __name__ == "__main__":
    main()
