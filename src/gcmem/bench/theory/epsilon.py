"""Measures ε, the difference in similarity between old and new state, on any dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcmem.bench.data.instances import Instance
from gcmem.errors import InvalidInputError
from gcmem.protocols import Encoder, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Epsilon:
    """The distribution of |sim(q, old) - sim(q, new)| over all pairs of an instance."""

    values: tuple[float, ...]
    mean: float
    median: float
    p90: float
    stale_closer: float
    """Share of pairs whose old chunk is more similar to the question than the new one."""
    instances: int


def epsilon(
    encoder: Encoder, instances: Sequence[Instance], *, progress: Progress | None = None
) -> Epsilon:
    """Measures ε over the instances that have both an old and a new chunk."""
    gaps: list[float] = []
    signed: list[float] = []
    used = 0
    for number, instance in enumerate(instances):
        old = [turn.text for turn in instance.of_kind("old")]
        new = [turn.text for turn in instance.of_kind("new")]
        if old and new:
            used += 1
            vectors = encoder.encode([instance.question, *old, *new])
            similar = vectors[1:] @ vectors[0]
            difference = similar[: len(old), None] - similar[None, len(old) :]
            gaps += [float(gap) for gap in np.abs(difference).ravel()]
            signed += [float(gap) for gap in difference.ravel()]
        if progress is not None:
            progress(number + 1, len(instances))
    if not gaps:
        raise InvalidInputError("no instance has both an old and a new turn: ε can't be measured")
    return Epsilon(
        values=tuple(gaps),
        mean=round(float(np.mean(gaps)), 4),
        median=round(float(np.median(gaps)), 4),
        p90=round(float(np.percentile(gaps, 90)), 4),
        stale_closer=round(float(np.mean(np.array(signed) > 0)), 4),
        instances=used,
    )
