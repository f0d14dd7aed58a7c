"""Qualification: is an oracle good enough to remove chunks?

κ's recall decides whether the method works: one that sees under half of the contradictions leaves
the stale majority in place, and one that is often wrong removes what is true.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gcmem.errors import InvalidInputError
from gcmem.judge.labelled import LabelledPair, LabelledSet, set_of
from gcmem.protocols import CandidateResolver, ConflictOracle, Progress
from gcmem.types import Fitness, FrozenDict

LEAST = 0.5
"""The paper's rule: an oracle with a recall of a half or less must not remove anything."""
GOOD = 0.9
ENOUGH = 50
"""Conflicts, and other pairs, that it takes for a result to be recorded."""
BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualification:
    """How well an oracle does, and what it may therefore do.

    `shadowed` is the share of contradicted chunks that went, `kept` the share of those that must
    stay and did; both only where whole sets were judged.
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
    """Whether there was enough to judge by for the result to be recorded."""


def qualify_pairs(
    oracle: ConflictOracle, pairs: Sequence[LabelledPair], *, progress: Progress | None = None
) -> Qualification:
    """Judges labelled pairs, one candidate set each."""
    if not any(pair.conflict for pair in pairs):
        raise InvalidInputError("no conflicting pair among them: recall can't be measured")
    said: list[bool] = []
    scores: list[float] = []
    started = time.perf_counter()
    for number, pair in enumerate(pairs):
        conflicts = oracle.judge(set_of(pair))
        said.append(bool(conflicts))
        scores.append(max((conflict.score for conflict in conflicts), default=0.0))
        if progress is not None:
            progress(number + 1, len(pairs))
    spent_ms = (time.perf_counter() - started) * 1000
    truth = [pair.conflict for pair in pairs]
    precision, recall, f1 = _figures(said, truth)
    return Qualification(
        oracle=oracle.id,
        precision=precision,
        recall=recall,
        f1=f1,
        fitness=fitness(precision=precision, recall=recall),
        judged=len(pairs),
        latency_ms_per_pair=round(spent_ms / len(pairs), 3),
        calibration_error=_calibration_error(scores, truth),
        by_category=_by_category(pairs, said),
        enough=min(sum(truth), len(truth) - sum(truth)) >= ENOUGH,
    )


def qualify_sets(
    resolver: CandidateResolver, sets: Sequence[LabelledSet], *, progress: Progress | None = None
) -> Qualification:
    """Judges whole sets: what went that should have, and what stayed that must.

    One witness is enough to remove a chunk, so the figures are about the chunks that go, not
    about pairs: recall is the share of the contradicted ones that went, precision the share of
    those that went which are contradicted.
    """
    if not any(labelled.conflicts for labelled in sets):
        raise InvalidInputError("no conflict in any instance: recall can't be measured")
    said: list[bool] = []
    truth: list[bool] = []
    scores: list[float] = []
    must, stayed, pairs = 0, 0, 0
    started = time.perf_counter()
    for number, labelled in enumerate(sets):
        resolution = resolver.resolve(labelled.candidates)
        gone = {shadow.candidate.chunk.id: shadow.conflict.score for shadow in resolution.shadows}
        stale = {older for older, _ in labelled.conflicts}
        ids = [item.chunk.id for item in labelled.candidates]
        said += [i in gone for i in ids]
        truth += [i in stale for i in ids]
        scores += [gone.get(i, 0.0) for i in ids]
        must += len(labelled.must_keep)
        stayed += len(set(labelled.must_keep) - gone.keys())
        pairs += len(ids) * (len(ids) - 1) // 2
        if progress is not None:
            progress(number + 1, len(sets))
    spent_ms = (time.perf_counter() - started) * 1000
    precision, recall, f1 = _figures(said, truth)
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
        enough=min(sum(truth), must) >= ENOUGH,
    )


def fitness(*, precision: float, recall: float) -> Fitness:
    """Returns the class: unfit at a half or less, optimal from nine tenths, marginal between."""
    if recall <= LEAST or precision <= LEAST:
        return "unfit"
    return "optimal" if recall >= GOOD and precision >= GOOD else "marginal"


def _figures(said: Sequence[bool], truth: Sequence[bool]) -> tuple[float, float, float]:
    hits = sum(s and t for s, t in zip(said, truth, strict=True))
    precision = hits / sum(said) if any(said) else 0.0
    recall = hits / sum(truth) if any(truth) else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return round(precision, 4), round(recall, 4), round(f1, 4)


def _by_category(
    pairs: Sequence[LabelledPair], said: Sequence[bool]
) -> dict[str, dict[str, float]]:
    """Recall of the conflicts and false-positive rate of the rest, category by category."""
    report: dict[str, dict[str, float]] = {}
    for name in sorted({pair.category for pair in pairs}):
        rows = [(p.conflict, s) for p, s in zip(pairs, said, strict=True) if p.category == name]
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
    """Returns how far scores are from the share of true conflicts, on average over ten bins."""
    total = 0.0
    for number in range(BINS):
        rows = [
            (score, label)
            for score, label in zip(scores, truth, strict=True)
            if min(int(score * BINS), BINS - 1) == number
        ]
        if rows:
            said = sum(score for score, _ in rows) / len(rows)
            true = sum(label for _, label in rows) / len(rows)
            total += len(rows) * abs(said - true)
    return round(total / max(1, len(scores)), 4)
