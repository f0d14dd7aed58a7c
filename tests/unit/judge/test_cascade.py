from __future__ import annotations

from collections.abc import Sequence

import pytest

from gcmem import Candidate, CandidateSet, Chunk, Conflict, Scope
from gcmem.errors import InvalidInputError
from gcmem.judge import CascadeOracle
from tests.conftest import day

A, B, C, D = (Chunk(id=name, text=name, at=day(n)) for n, name in enumerate("abcd"))


def candidates(*chunks: Chunk) -> CandidateSet:
    items = tuple(Candidate(chunk=chunk, relevance=0.5, origin="mtm") for chunk in chunks)
    return CandidateSet(query="q", items=items, options=("x", "y"), as_of=day(9))


class Table:
    """Scores pairs of texts from a table, 0 for the others."""

    id = "table@1"

    def __init__(self, scores: dict[str, float]) -> None:
        self._scores = scores

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        assert pairs
        return [self._scores.get(older + newer, 0.0) for older, newer in pairs]


class Second:
    """Answers with fixed pairs, and keeps the sets that it was asked about."""

    id = "second@2"

    def __init__(self, *pairs: str) -> None:
        self._pairs = pairs
        self.asked: list[CandidateSet] = []

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        self.asked.append(candidates)
        return tuple(
            Conflict(older=pair[0], newer=pair[1], score=0.6, oracle=self.id)
            for pair in self._pairs
        )


def test_only_what_the_first_is_unsure_of_goes_to_the_second() -> None:
    first = Table({"ab": 0.8, "ac": 0.5, "ad": 0.2, "cd": 0.79})
    second = Second("ac", "ad", "ab")
    oracle = CascadeOracle(first, second)
    found = oracle.judge(candidates(D, B, C, A))
    assert [(c.older, c.newer, c.score) for c in found] == [("a", "b", 0.8), ("a", "c", 0.6)]
    assert {c.oracle for c in found} == {oracle.id} == {"cascade(table@1,second@2,0.2-0.8)"}
    (asked,) = second.asked
    assert [item.chunk.id for item in asked] == ["d", "c", "a"]
    assert (asked.query, asked.options, asked.as_of) == ("q", ("x", "y"), day(9))
    assert oracle.last_asked == 2


def test_a_verdict_of_the_second_counts_in_either_order_and_once() -> None:
    oracle = CascadeOracle(Table({"ab": 0.5}), Second("ba", "ab"))
    assert [(c.older, c.newer) for c in oracle.judge(candidates(A, B))] == [("a", "b")]


def test_a_sure_first_needs_no_second() -> None:
    second = Second("ab")
    oracle = CascadeOracle(Table({"ab": 0.9}), second)
    assert len(oracle.judge(candidates(A, B, C))) == 1
    assert oracle.last_asked == 0
    assert second.asked == []


def test_pairs_that_can_not_conflict_reach_neither() -> None:
    second = Second()
    bobs = Chunk(id="o", text="o", at=day(5), scope=Scope(user_id="bob"))
    oracle = CascadeOracle(Table({}), second)
    assert oracle.judge(candidates(A, bobs)) == ()
    assert oracle.judge(candidates()) == ()
    assert second.asked == []


@pytest.mark.parametrize(("low", "high"), [(0.8, 0.2), (-0.1, 0.5), (0.5, 1.1)])
def test_bounds_that_make_no_sense_are_refused(low: float, high: float) -> None:
    with pytest.raises(InvalidInputError, match="low"):
        CascadeOracle(Table({}), Second(), low=low, high=high)
