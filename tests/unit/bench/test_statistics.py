from __future__ import annotations

import builtins
from typing import Any

import pytest

from gcmem.bench.report.statistics import (
    bootstrap_difference,
    compare_outcomes,
    false_discovery,
    mcnemar,
    paired,
    paired_difference,
    stars,
)
from gcmem.bench.run.outcomes import Condition, Outcome
from gcmem.errors import InvalidInputError, MissingExtraError

CONDITION = Condition(
    dataset="chat-medium",
    setting="retrieval",
    retrieval="dense",
    reader="r",
    mode="forced-choice",
    path="standard",
)


def outcomes(*marks: str) -> list[Outcome]:
    """One outcome a mark: + right, - wrong, e failed."""
    return [
        Outcome(
            condition=CONDITION,
            instance=f"i{number}",
            family="diet",
            severity=1,
            subset="single",
            correct=mark == "+",
            error="timeout" if mark == "e" else "",
        )
        for number, mark in enumerate("".join(marks))
    ]


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"),
    [(0, 0, 1.0), (0, 5, 0.0625), (5, 0, 0.0625), (2, 8, 0.109375), (3, 3, 1.0), (0, 10, 2 / 1024)],
)
def test_mcnemar_is_the_exact_binomial_test_of_the_discordant_pairs(
    only_a: int, only_b: int, p: float
) -> None:
    a = [True] * only_a + [False] * only_b + [True, False]
    b = [False] * only_a + [True] * only_b + [True, False]
    found = mcnemar(a, b)
    assert (found.only_a, found.only_b, found.ties) == (only_a, only_b, 2)
    assert found.p == pytest.approx(p)


def test_the_bootstrap_interval_holds_the_difference_and_repeats() -> None:
    a = [n % 4 == 0 for n in range(60)]
    b = [n % 4 < 2 for n in range(60)]
    found = bootstrap_difference(a, b)
    assert found.difference == pytest.approx(0.25)
    assert found.method == "BCa"
    # The normal interval of 15 of 60 is 0.25 ± 0.11.
    assert found.low == pytest.approx(0.14, abs=0.03)
    assert found.high == pytest.approx(0.36, abs=0.03)
    assert found == bootstrap_difference(a, b)
    turned = bootstrap_difference(b, a)
    assert turned.low < turned.difference < turned.high < 0


def test_the_bootstrap_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    import random

    rng, hits, rounds = random.Random(7), 0, 60
    for _ in range(rounds):
        a = [rng.random() < 0.4 for _ in range(80)]
        b = [rng.random() < 0.6 for _ in range(80)]
        found = bootstrap_difference(a, b, resamples=500)
        hits += found.low <= 0.2 <= found.high
    assert hits / rounds > 0.85


def test_without_variance_the_interval_is_the_point() -> None:
    for a, b, difference in (
        ([True] * 5, [True] * 5, 0.0),
        ([False] * 5, [True] * 5, 1.0),
        ([True], [False], -1.0),
    ):
        found = bootstrap_difference(a, b)
        assert (found.difference, found.low, found.high) == (difference,) * 3
        assert found.method == "percentile"


def test_false_discovery_is_benjamini_and_hochberg() -> None:
    assert false_discovery([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.02, 0.04, 0.04, 0.02))
    assert false_discovery([0.5]) == (0.5,)
    assert false_discovery([]) == ()


def test_a_star_is_a_p_under_one_in_a_hundred() -> None:
    assert (stars(0.0099), stars(0.01), stars(1.0)) == ("*", "", "")


def test_outcomes_are_paired_by_instance_and_errors_go_pairwise() -> None:
    a, b = outcomes("++-e-"), outcomes("+--+e")
    pairs = paired(a, list(reversed(b)))
    assert pairs.instances == ("i0", "i1", "i2")
    assert pairs.a == (True, True, False)
    assert pairs.b == (True, False, False)
    assert paired_difference(a, b) == pytest.approx(-1 / 3)
    comparison = compare_outcomes(a, b)
    assert comparison is not None
    assert comparison.difference.pairs == 3
    assert comparison.test.only_a == 1
    assert compare_outcomes(a, []) is None
    assert paired_difference(a, outcomes("eeeee")) is None


def test_what_can_not_be_paired_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'i0' was answered twice"):
        paired(outcomes("+") * 2, outcomes("+"))
    with pytest.raises(InvalidInputError, match="1 and 2 values"):
        mcnemar([True], [True, False])
    with pytest.raises(InvalidInputError, match="non-empty"):
        bootstrap_difference([], [])


def test_a_missing_scipy_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"gcmem\[bench\]"):
        false_discovery([0.5])
