"""Computes ΔGC: GC-Mem's answers compared with standard RAG's on the same instances."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gcmem.bench.report.statistics import bootstrap_mean
from gcmem.bench.run.outcomes import Condition, Outcome, Run, answered

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

GCMEM, STANDARD = "gcmem", "standard"
PATHS = {STANDARD: "standard RAG", "timestamp": "timestamp", GCMEM: "GC-Mem"}
BAG = "bag of facts"
SETTING_FILLS = ("retrieval", BAG)
ARRANGEMENTS = {
    "dense": "STM off",
    "paper": "STM on",
    "stratified": "stratified",
    "bag": BAG,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """GC-Mem's and standard RAG's answers to one instance under otherwise equal conditions."""

    gcmem: Outcome
    standard: Outcome

    @property
    def condition(self) -> Condition:
        """The condition of GC-Mem's answer."""
        return self.gcmem.condition

    @property
    def lift(self) -> int:
        """1 if only GC-Mem was right, -1 if only standard RAG was, else 0."""
        return self.gcmem.correct - self.standard.correct


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean ΔGC in percentage points, and its 95% bootstrap interval."""

    low: float
    mean: float
    high: float
    instances: int

    @property
    def spread(self) -> tuple[float, float]:
        """The interval's lengths below and above the mean."""
        return max(0.0, self.mean - self.low), max(0.0, self.high - self.mean)


def arrangement(condition: Condition) -> str:
    """Returns how the candidates were retrieved, in words."""
    name = "bag" if condition.setting == "bag" else condition.retrieval
    return ARRANGEMENTS.get(name, name)


def arrangements(outcomes: Iterable[Outcome]) -> list[str]:
    """Returns the arrangements in the outcomes, in a fixed order."""
    order = list(ARRANGEMENTS.values())
    found = dict.fromkeys(arrangement(outcome.condition) for outcome in outcomes)
    return sorted(found, key=lambda name: order.index(name) if name in order else len(order))


def main_oracle(run: Run) -> str:
    """Returns a run's main κ: its setting `oracle`, else the most used oracle.

    Gold labels are the last choice: they are a ceiling, not a detector.
    """
    asked = Counter(o.condition.oracle for o in run.outcomes if o.condition.path == GCMEM)
    named = run.about.get("oracle")
    if isinstance(named, str) and named in asked:
        return named
    detectors = [name for name, _ in asked.most_common() if not name.startswith("gold")]
    return next(iter([*detectors, *asked]), "")


def one_oracle(run: Run) -> list[Outcome]:
    """Returns the answered outcomes of every path; for GC-Mem, only those with the main κ."""
    oracle = main_oracle(run)
    return [o for o in answered(run.outcomes) if o.condition.oracle in ("", oracle)]


def headline(run: Run) -> list[Outcome]:
    """Returns the answered outcomes of the main grid: without sweeps of N:M or k, with one κ."""
    plain = [o for o in one_oracle(run) if o.ratio is None]
    ks = Counter(o.condition.k for o in plain if o.condition.setting != "bag").most_common(1)
    return [
        outcome
        for outcome in plain
        if outcome.condition.setting == "bag" or outcome.condition.k == ks[0][0]
    ]


def pairs(outcomes: Sequence[Outcome]) -> list[Pair]:
    """Pairs GC-Mem with standard RAG on the instances that both answered."""
    valid = answered(outcomes)
    standard = {instance_key(o): o for o in valid if o.condition.path == STANDARD}
    return [
        Pair(gcmem=outcome, standard=standard[instance_key(outcome)])
        for outcome in valid
        if outcome.condition.path == GCMEM and instance_key(outcome) in standard
    ]


def instance_key(outcome: Outcome) -> tuple[object, ...]:
    """Returns a key that all paths of one instance share."""
    asked = outcome.condition
    cell = (asked.dataset, asked.setting, asked.retrieval, asked.reader, asked.mode, asked.k)
    return (*cell, outcome.ratio, outcome.instance)


def interval(found: Sequence[Pair]) -> Interval:
    """Returns the bootstrap interval of the paired difference, resampling instances.

    Answers are not resampled: several readers' or modes' answers to one instance are dependent.
    """
    by_instance = group(found, lambda pair: (pair.condition.dataset, pair.gcmem.instance))
    lifts = np.array([mean_lift(own) for own in by_instance.values()])
    drawn = bootstrap_mean(lifts)
    return Interval(low=drawn.low, mean=mean_lift(found), high=drawn.high, instances=len(lifts))


def mean_lift(found: Sequence[Pair]) -> float:
    """Returns the mean ΔGC in percentage points."""
    return 100 * statistics.fmean(pair.lift for pair in found)


def accuracy(outcomes: Sequence[Outcome]) -> float:
    """Returns the share of correct answers."""
    return statistics.fmean(outcome.correct for outcome in outcomes)


def mean(values: Iterable[float | None]) -> float | None:
    """Returns the mean of the values that are not None, or None if there are none."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def group(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Groups items by key, in order of first occurrence."""
    found: dict[K, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return dict(found)
