from __future__ import annotations

from collections.abc import Sequence

import pytest

from gcmem import Memory
from gcmem.errors import InvalidInputError
from gcmem.protocols import Vectors
from gcmem.retrieve.fusion import Fusion
from gcmem.settings import Settings
from gcmem.testing import HashEncoder
from tests.conftest import day


def test_relevance_is_a_mean_of_meaning_and_words() -> None:
    fusion = Fusion.of([0.8, 0.6, 0.4], [("a", 6.0), ("b", 3.0)], lexical_weight=0.5)
    assert fusion.relevance("a", 0.8) == pytest.approx(1.0)
    assert fusion.relevance("b", 0.6) == pytest.approx(0.5)
    assert fusion.relevance("b", 0.1) == pytest.approx(0.25)  # less similar than every hit
    assert fusion.relevance("c", 0.4) == 0.0
    assert fusion.relevance("c", 0.9) == pytest.approx(0.5)


def test_one_hit_or_none_is_no_special_case() -> None:
    assert Fusion.of([0.3], [], lexical_weight=0.5).relevance("a", 0.3) == pytest.approx(0.5)
    assert Fusion.of([], [], lexical_weight=0.5).relevance("a", 0.0) == pytest.approx(0.5)


class Blind(HashEncoder):
    """Sees no difference between texts."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        return super().encode(["same"] * len(texts))


def test_words_find_what_no_vector_finds() -> None:
    def first(weight: float) -> str:
        settings = Settings(lexical_weight=weight)
        with Memory(":memory:", encoder=Blind(), settings=settings) as memory:
            memory.add("the primary is db-eu-03 now", at=day(1))
            memory.add([f"note {n}" for n in range(50)], at=day(2))
            return memory.candidates("Which one is db-eu-03?", k=5).items[0].chunk.text

    assert first(0.5) == "the primary is db-eu-03 now"
    assert first(1.0) == "the primary is db-eu-03 now"
    assert first(0.0) != "the primary is db-eu-03 now"


@pytest.mark.parametrize("weight", [-0.1, 1.1, True, "0.5", None, float("nan")])
def test_a_weight_is_a_share(weight: object) -> None:
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        Settings(lexical_weight=weight)  # type: ignore[arg-type]


class Shouting:
    id = "shouting@1"

    def answers(self, question: str, texts: Sequence[str]) -> list[float]:
        return [float(text.startswith("user: ANSWER")) for text in texts]


def test_a_reranker_moves_what_answers_to_the_top() -> None:
    with Memory(":memory:", encoder=HashEncoder(), reranker=Shouting()) as memory:
        memory.add(["tea on the table", "ANSWER tea on the shelf", "tea in the garden"])
        found = memory.candidates("the tea", k=3)
        assert found.items[0].chunk.text.startswith("ANSWER")
        assert 0 <= found.items[-1].relevance < found.items[0].relevance <= 1
        assert memory.candidates("where?", k=3, user_id="nobody").items == ()


def test_the_newest_state_is_a_candidate_whatever_the_words_say() -> None:
    with Memory(":memory:", encoder=HashEncoder()) as memory:
        memory.add([f"ana eats meat on day {n}" for n in range(60)], at=day(1))
        memory.add("ana eats tofu", at=day(2))
        memory.add([f"rain {n}" for n in range(60)], at=day(3))
        found = memory.candidates("ana eats meat on day 7?", k=3)
        assert "ana eats tofu" in {item.chunk.text for item in found}
        assert len(found) <= 9
