"""Measures how good κ must be, by degrading a perfect oracle step by step.

The paper requires a recall above 0.5. This measures accuracy and keep rate at every precision and
recall, to check the rule behind `gcmem qualify`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from gcmem.bench.data.instances import Instance
from gcmem.bench.data.streams import Texts
from gcmem.bench.run.memories import BenchMemory
from gcmem.bench.run.readers import MajorityReader
from gcmem.judge.pairs import in_order
from gcmem.protocols import Progress
from gcmem.resolve import Resolver
from gcmem.types import CandidateSet, Conflict, Prompt

STEPS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRow:
    """Accuracy and keep rate with an oracle of this precision and recall over pairs."""

    precision: float
    recall: float
    accuracy: float
    keep_rate: float


class DegradedOracle:
    """Finds each gold pair with probability `recall`, and adds wrong pairs to reach `precision`."""

    def __init__(self, memory: BenchMemory, *, precision: float, recall: float, seed: int) -> None:
        self._gold = {frozenset(pair) for pair in memory.conflicts}
        self._precision = precision
        self._recall = recall
        self._rng = random.Random(f"{memory.instance.id} {precision} {recall} {seed}")
        self.id = f"gold[p={precision:g},r={recall:g}]"

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns correct and wrong pairs."""
        pairs = [in_order(a.chunk, b.chunk) for a, b in combinations(candidates, 2)]
        gold = [(a, b) for a, b in pairs if frozenset((a.id, b.id)) in self._gold]
        other = [(a, b) for a, b in pairs if frozenset((a.id, b.id)) not in self._gold]
        found = [pair for pair in gold if self._rng.random() < self._recall]
        wrong = round(len(found) * (1 - self._precision) / self._precision)
        found += self._rng.sample(other, min(wrong, len(other)))
        return tuple(Conflict(older=a.id, newer=b.id, score=1.0, oracle=self.id) for a, b in found)


def threshold_rows(
    texts: Texts,
    instances: Sequence[Instance],
    *,
    steps: Sequence[float] = STEPS,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[ThresholdRow]:
    """Returns one row per precision and recall, over bags of facts with the majority reader."""
    found: dict[tuple[float, float], list[tuple[bool, float]]] = {}
    for number, instance in enumerate(instances, 1):
        memory = BenchMemory.of(instance, texts)
        candidates = memory.candidates("bag", "none", 0)
        reader = MajorityReader(memory.states, instance.answer)
        live, turn_of = set(instance.must_keep), memory.turn_of
        for precision in steps:
            for recall in steps:
                oracle = DegradedOracle(memory, precision=precision, recall=recall, seed=seed)
                kept = Resolver(oracle).resolve(candidates).kept
                prompt = Prompt(
                    question=instance.question,
                    chunks=tuple(item.chunk for item in kept),
                    options=instance.options,
                    mode="forced-choice",
                )
                stayed = live & {turn_of[item.chunk.id] for item in kept}
                found.setdefault((precision, recall), []).append(
                    (reader.read([prompt])[0].choice == instance.answer, len(stayed) / len(live))
                )
        memory.close()
        if progress is not None:
            progress(number, len(instances))
    return [
        ThresholdRow(
            precision=precision,
            recall=recall,
            accuracy=round(sum(right for right, _ in rows) / len(rows), 4),
            keep_rate=round(sum(kept for _, kept in rows) / len(rows), 4),
        )
        for (precision, recall), rows in found.items()
    ]
