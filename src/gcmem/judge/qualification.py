"""Qualification: is an oracle good enough to remove chunks?

An oracle that finds less than half of the contradictions leaves most stale chunks in place. An
oracle that is often wrong removes true ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gcmem.errors import InvalidInputError
from gcmem.frozen import FrozenDict
from gcmem.judge.labelled import LabelledPair, LabelledSet, pair_as_set
from gcmem.protocols import CandidateResolver, ConflictOracle, Progress
from gcmem.types import Fitness

UNFIT_UP_TO = 0.5
"""The paper's rule: an oracle with a recall of 0.5 or less must not remove anything."""
OPTIMAL_FROM = 0.9
MIN_LABELS = 50
"""Minimum number of conflicts, and of other pairs, for a result to be recorded."""
BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualification:
    """An oracle's measured quality and the fitness that follows from it.

    `shadowed` is the share of contradicted chunks that were removed, `kept` the share of must-keep
    chunks that stayed. Both are None if pairs were judged instead of sets.
    """

    oracle: str
    precision: float
    recall: float
    f1: float
    fitness: Fitness
    judged: int
    latency_ms_per_pair: float
    calibration_error: float
    by_category: Mapping[str, Mapping[str, float]] = field(default_factory=FrozenDict, hash=False)
    shadowed: float | None = None
    kept: float | None = None
    enough: bool = False
    """Whether there were enough labels for the result to be recorded."""


def qualify_pairs(
    oracle: ConflictOracle, pairs: Sequence[LabelledPair], *, progress: Progress | None = None
) -> Qualification:
    """Measures an oracle on labelled pairs, one candidate set per pair."""
    if not any(pair.conflict for pair in pairs):
        raise InvalidInputError("none of the pairs conflicts: recall can't be measured")
    predicted: list[bool] = []
    scores: list[float] = []
    started = time.perf_counter()
    for number, pair in enumerate(pairs):
        conflicts = oracle.judge(pair_as_set(pair))
        predicted.append(bool(conflicts))
        scores.append(max((conflict.score for conflict in conflicts), default=0.0))
        if progress is not None:
            progress(number + 1, len(pairs))
    spent_ms = (time.perf_counter() - started) * 1000
    truth = [pair.conflict for pair in pairs]
    precision, recall, f1 = _precision_recall_f1(predicted, truth)
    return Qualification(
        oracle=oracle.id,
        precision=precision,
        recall=recall,
        f1=f1,
        fitness=fitness(precision=precision, recall=recall),
        judged=len(pairs),
        latency_ms_per_pair=round(spent_ms / len(pairs), 3),
        calibration_error=_calibration_error(scores, truth),
        by_category=_by_category(pairs, predicted),
        enough=min(sum(truth), len(truth) - sum(truth)) >= MIN_LABELS,
    )


def qualify_sets(
    resolver: CandidateResolver, sets: Sequence[LabelledSet], *, progress: Progress | None = None
) -> Qualification:
    """Measures a resolver on whole labelled sets.

    It counts chunks, not pairs, since one witness is enough to remove a chunk. Recall is the share
    of contradicted chunks that were removed; precision is the share of removed chunks that are
    contradicted.
    """
    if not any(labelled.conflicts for labelled in sets):
        raise InvalidInputError("none of the sets has a conflict: recall can't be measured")
    predicted: list[bool] = []
    truth: list[bool] = []
    scores: list[float] = []
    must, stayed, pairs = 0, 0, 0
    started = time.perf_counter()
    for number, labelled in enumerate(sets):
        resolution = resolver.resolve(labelled.candidates)
        gone = {shadow.candidate.chunk.id: shadow.conflict.score for shadow in resolution.shadows}
        stale = {older for older, _ in labelled.conflicts}
        ids = [item.chunk.id for item in labelled.candidates]
        predicted += [i in gone for i in ids]
        truth += [i in stale for i in ids]
        scores += [gone.get(i, 0.0) for i in ids]
        must += len(labelled.must_keep)
        stayed += len(set(labelled.must_keep) - gone.keys())
        pairs += len(ids) * (len(ids) - 1) // 2
        if progress is not None:
            progress(number + 1, len(sets))
    spent_ms = (time.perf_counter() - started) * 1000
    precision, recall, f1 = _precision_recall_f1(predicted, truth)
    return Qualification(
        oracle=resolver.oracle.id,
        precision=precision,
        recall=recall,
        f1=f1,
        fitness=fitness(precision=precision, recall=recall),
        judged=len(sets),
        latency_ms_per_pair=round(spent_ms / max(1, pairs), 3),
        calibration_error=_calibration_error(scores, truth),
        shadowed=recall,
        kept=round(stayed / must, 4) if must else 1.0,
        enough=min(sum(truth), must) >= MIN_LABELS,
    )


def fitness(*, precision: float, recall: float) -> Fitness:
    """Returns the fitness: unfit up to 0.5, optimal from 0.9, marginal in between."""
    if recall <= UNFIT_UP_TO or precision <= UNFIT_UP_TO:
        return "unfit"
    return "optimal" if recall >= OPTIMAL_FROM and precision >= OPTIMAL_FROM else "marginal"


def _precision_recall_f1(
    predicted: Sequence[bool], truth: Sequence[bool]
) -> tuple[float, float, float]:
    hits = sum(s and t for s, t in zip(predicted, truth, strict=True))
    precision = hits / sum(predicted) if any(predicted) else 0.0
    recall = hits / sum(truth) if any(truth) else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return round(precision, 4), round(recall, 4), round(f1, 4)


def _by_category(
    pairs: Sequence[LabelledPair], predicted: Sequence[bool]
) -> dict[str, dict[str, float]]:
    """Returns recall and false-positive rate per category."""
    report: dict[str, dict[str, float]] = {}
    for name in sorted({pair.category for pair in pairs}):
        rows = [
            (p.conflict, s) for p, s in zip(pairs, predicted, strict=True) if p.category == name
        ]
        conflicts = [s for conflict, s in rows if conflict]
        others = [s for conflict, s in rows if not conflict]
        figures: dict[str, float] = {"n": len(rows)}
        if conflicts:
            figures["recall"] = round(sum(conflicts) / len(conflicts), 4)
        if others:
            figures["false_positive_rate"] = round(sum(others) / len(others), 4)
        report[name] = figures
    return report


def _calibration_error(scores: Sequence[float], truth: Sequence[bool]) -> float:
    """Returns the expected calibration error of the scores over ten bins."""
    total = 0.0
    for number in range(BINS):
        rows = [
            (score, label)
            for score, label in zip(scores, truth, strict=True)
            if min(int(score * BINS), BINS - 1) == number
        ]
        if rows:
            predicted = sum(score for score, _ in rows) / len(rows)
            true = sum(label for _, label in rows) / len(rows)
            total += len(rows) * abs(predicted - true)
    return round(total / max(1, len(scores)), 4)
