from __future__ import annotations

from collections.abc import Sequence

import pytest

from gcmem import Candidate, CandidateSet, Chunk, Scope
from gcmem.conflict import GoldOracle, PairwiseOracle
from gcmem.errors import InvalidInputError
from tests.conftest import day


def candidates(*chunks: Chunk) -> CandidateSet:
    items = tuple(Candidate(chunk=chunk, relevance=0.5, origin="mtm") for chunk in chunks)
    return CandidateSet(query="the question", items=items)


class Recording:
    id = "recording@1"

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, str]]] = []

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.asked += [(question, pair) for pair in pairs]
        return [0.9 if "new" in newer else 0.1 for _, newer in pairs]


def test_a_pairwise_oracle_asks_older_first_and_only_pairs_that_can_conflict() -> None:
    classifier = Recording()
    found = PairwiseOracle(classifier).judge(
        candidates(
            Chunk(id="n", text="new", at=day(2), seq=2, scope=Scope(user_id="ana")),
            Chunk(id="o", text="old", at=day(1), seq=1, scope=Scope(user_id="ana")),
            Chunk(id="same", text="old", at=day(1), seq=3, scope=Scope(user_id="ana")),
            Chunk(id="b", text="new of bob", at=day(3), seq=4, scope=Scope(user_id="bob")),
        )
    )
    assert classifier.asked == [("the question", ("old", "new"))] * 2
    assert {(c.older, c.newer, c.score, c.oracle) for c in found} == {
        ("o", "n", 0.9, "recording@1"),
        ("same", "n", 0.9, "recording@1"),
    }
    with pytest.raises(InvalidInputError):
        PairwiseOracle(classifier, threshold=2)


def test_gold_answers_from_labels_in_either_order() -> None:
    chunks = [Chunk(id=name, text=name, at=day(n)) for n, name in enumerate("abc")]
    found = GoldOracle([("b", "a"), ("c", "elsewhere")]).judge(candidates(*chunks))
    assert [(c.older, c.newer, c.score) for c in found] == [("a", "b", 1.0)]
