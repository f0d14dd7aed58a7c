"""Size and significance of the difference between two paired series, computed with scipy."""

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
    """Two boolean series over the same instances, in the same order."""

    instances: tuple[str, ...]
    a: tuple[bool, ...]
    b: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean of B minus the mean of A, with its bootstrap interval."""

    difference: float
    low: float
    high: float
    pairs: int
    method: str
    """"BCa", or "percentile" if BCa is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """The exact McNemar test of the discordant pairs."""

    only_a: int
    only_b: int
    ties: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The difference between two paired series, and its test."""

    difference: Difference
    test: McNemar


def paired(a: Sequence[Outcome], b: Sequence[Outcome]) -> Pairs:
    """Matches two lists of outcomes by instance; instances with an error in either are dropped."""
    left, right = _by_instance(a), _by_instance(b)
    shared = tuple(sorted(left.keys() & right.keys()))
    return Pairs(
        instances=shared,
        a=tuple(left[instance] for instance in shared),
        b=tuple(right[instance] for instance in shared),
    )


def compare_outcomes(a: Sequence[Outcome], b: Sequence[Outcome]) -> Comparison | None:
    """Compares the accuracy of B with that of A; None if no instance was answered in both."""
    pairs = paired(a, b)
    if not pairs.instances:
        return None
    return Comparison(
        difference=bootstrap_difference(pairs.a, pairs.b), test=mcnemar(pairs.a, pairs.b)
    )


def paired_difference(a: Sequence[Outcome], b: Sequence[Outcome]) -> float | None:
    """Returns B's accuracy minus A's, or None if they share no answered instance."""
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
    """Returns the p-values with the Benjamini-Hochberg adjustment, in the given order."""
    if not p_values:
        return ()
    return tuple(float(p) for p in _stats().false_discovery_control(p_values, method="bh"))


def stars(p: float) -> str:
    """Returns a star if p < 0.01, the paper's mark of significance."""
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
            f"{len(a)} and {len(b)} values: pass two non-empty series of the same length"
        )


def _interval(values: Any, method: str, resamples: int, seed: int) -> tuple[float, float]:
    if len(values) == 1:
        values = np.repeat(values, 2)  # scipy needs two values; all resamples are equal anyway
    with warnings.catch_warnings():
        # Without variance BCa divides by zero and warns; the caller then uses percentiles.
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
