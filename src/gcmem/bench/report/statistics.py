"""Differences between two paired series: how large, how certain; all of it by scipy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcmem.bench.run.outcomes import Outcome, answered
from gcmem.errors import InvalidInputError, MissingExtraError

RESAMPLES = 10_000
CONFIDENCE = 0.95
SEED = 20260101
SIGNIFICANT = 0.01
"""The paper's star: p < 0.01."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Two boolean series of the same instances, in the instances' order."""

    instances: tuple[str, ...]
    a: tuple[bool, ...]
    b: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean of B less that of A, with its bootstrap interval."""

    difference: float
    low: float
    high: float
    pairs: int
    method: str
    """"BCa", or "percentile" where BCa is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """The exact test of the discordant pairs."""

    only_a: int
    only_b: int
    ties: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All that is said of two paired series."""

    difference: Difference
    test: McNemar


def paired(a: Sequence[Outcome], b: Sequence[Outcome]) -> Pairs:
    """Matches two lists of outcomes by instance; an error in either leaves the instance out."""
    left, right = _by_instance(a), _by_instance(b)
    shared = tuple(sorted(left.keys() & right.keys()))
    return Pairs(
        instances=shared,
        a=tuple(left[instance] for instance in shared),
        b=tuple(right[instance] for instance in shared),
    )


def compare_outcomes(a: Sequence[Outcome], b: Sequence[Outcome]) -> Comparison | None:
    """Compares the accuracy of B with that of A; None where no instance was answered in both."""
    pairs = paired(a, b)
    if not pairs.instances:
        return None
    return Comparison(
        difference=bootstrap_difference(pairs.a, pairs.b), test=mcnemar(pairs.a, pairs.b)
    )


def paired_difference(a: Sequence[Outcome], b: Sequence[Outcome]) -> float | None:
    """Returns only how much more accurate B is than A; None where they share no instance."""
    pairs = paired(a, b)
    return (sum(pairs.b) - sum(pairs.a)) / len(pairs.a) if pairs.a else None


def bootstrap_difference(
    a: Sequence[bool], b: Sequence[bool], *, resamples: int = RESAMPLES, seed: int = SEED
) -> Difference:
    """Returns mean(b) - mean(a) with a 95 % interval from resampling the pairs."""
    _check(a, b)
    differences = np.asarray(b, dtype=float) - np.asarray(a, dtype=float)
    return bootstrap_mean(differences, resamples=resamples, seed=seed)


def bootstrap_mean(values: Any, *, resamples: int = RESAMPLES, seed: int = SEED) -> Difference:
    """Returns the mean of paired differences with a 95 % interval from resampling them."""
    method, (low, high) = "BCa", _interval(values, "BCa", resamples, seed)
    if math.isnan(low) or math.isnan(high):
        method, (low, high) = "percentile", _interval(values, "percentile", resamples, seed)
    return Difference(
        difference=float(np.mean(values)), low=low, high=high, pairs=len(values), method=method
    )


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> McNemar:
    """Returns the exact two-sided McNemar test: the binomial test of the discordant pairs."""
    _check(a, b)
    only_a = sum(x and not y for x, y in zip(a, b, strict=True))
    only_b = sum(y and not x for x, y in zip(a, b, strict=True))
    discordant = only_a + only_b
    p = float(_stats().binomtest(only_a, discordant, 0.5).pvalue) if discordant else 1.0
    return McNemar(only_a=only_a, only_b=only_b, ties=len(a) - discordant, p=p)


def false_discovery(p_values: Sequence[float]) -> tuple[float, ...]:
    """Returns the p-values adjusted after Benjamini and Hochberg, in the order given."""
    if not p_values:
        return ()
    return tuple(float(p) for p in _stats().false_discovery_control(p_values, method="bh"))


def stars(p: float) -> str:
    """Returns the paper's mark of significance: a star at p < 0.01."""
    return "*" if p < SIGNIFICANT else ""


def _by_instance(outcomes: Sequence[Outcome]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for outcome in answered(outcomes):
        if outcome.instance in found:
            raise InvalidInputError(
                f"the instance {outcome.instance!r} was answered twice under {outcome.condition}"
            )
        found[outcome.instance] = outcome.correct
    return found


def _check(a: Sequence[bool], b: Sequence[bool]) -> None:
    if len(a) != len(b) or not a:
        raise InvalidInputError(
            f"{len(a)} and {len(b)} values: pass two series of the same length, not empty"
        )


def _interval(values: Any, method: str, resamples: int, seed: int) -> tuple[float, float]:
    if len(values) == 1:
        values = np.repeat(values, 2)  # scipy asks for two; every resample is the same either way
    with warnings.catch_warnings():
        # Without variance BCa divides by zero and says so; the caller then takes the percentiles.
        warnings.simplefilter("ignore")
        found = (
            _stats()
            .bootstrap(
                (values,),
                np.mean,
                n_resamples=resamples,
                batch=1000,
                confidence_level=CONFIDENCE,
                method=method,
                random_state=np.random.default_rng(seed),
            )
            .confidence_interval
        )
    return float(found.low), float(found.high)


def _stats() -> Any:
    try:
        import scipy.stats
    except ImportError:
        raise MissingExtraError("bench", package="scipy") from None
    return scipy.stats
