from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gcmem import Memory, Settings
from gcmem.errors import ChunkNotFoundError, InvalidInputError, TrustError
from gcmem.judge import PairwiseOracle
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import TRUSTED, UNTRUSTED
from tests.conftest import NOW, day, same_slot


@pytest.fixture
def wary(tmp_path: Path) -> Iterator[Memory]:
    """A memory that respects trust."""
    with Memory(
        tmp_path / "wary.db",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        settings=Settings(respect_trust=True),
        require_qualified=False,
        clock=lambda: NOW,
    ) as memory:
        yield memory


def texts(memory: Memory) -> list[str]:
    return sorted(item.chunk.text for item in memory.search("diet").kept)


def test_chunks_are_trusted_unless_said_otherwise(memory: Memory) -> None:
    (plain,) = memory.add("diet=meat")
    (doubtful,) = memory.add("diet=tofu", trust=UNTRUSTED)
    assert (plain.trust, doubtful.trust) == (TRUSTED, UNTRUSTED) == (1, 0)
    assert memory.get(doubtful.id) == doubtful


def test_an_untrusted_source_does_not_erase_what_a_trusted_one_said(wary: Memory) -> None:
    (said,) = wary.add("diet=tofu", at=day(1))
    (lie,) = wary.add("diet=meat", at=day(2), trust=UNTRUSTED)
    result = wary.search("diet")
    assert texts(wary) == ["diet=meat", "diet=tofu"]
    assert result.shadows == ()
    assert [(c.older, c.newer) for c in result.outranked] == [(said.id, lie.id)]
    assert wary.ask("diet").resolution.outranked == result.outranked


def test_a_trusted_source_still_replaces_what_it_said_and_what_others_said(wary: Memory) -> None:
    wary.add("diet=tofu", at=day(1))
    wary.add("diet=meat", at=day(2), trust=UNTRUSTED)
    wary.add("diet=fish", at=day(3))
    assert texts(wary) == ["diet=fish"]


def test_an_untrusted_source_replaces_what_an_untrusted_one_said(wary: Memory) -> None:
    wary.add("diet=tofu", at=day(1), trust=UNTRUSTED)
    wary.add("diet=meat", at=day(2), trust=UNTRUSTED)
    assert texts(wary) == ["diet=meat"]


def test_unless_asked_the_newest_wins_whoever_says_it(memory: Memory) -> None:
    memory.add("diet=tofu", at=day(1))
    memory.add("diet=meat", at=day(2), trust=UNTRUSTED)
    assert texts(memory) == ["diet=meat"]
    assert memory.search("diet").outranked == ()


def test_metadata_does_not_lend_trust(wary: Memory) -> None:
    wary.add("diet=tofu", at=day(1))
    (lie,) = wary.add(
        {"content": "diet=meat", "trust": 9, "metadata": {"trust": 9}},
        at=day(2),
        trust=UNTRUSTED,
        metadata={"trust": 9},
    )
    assert lie.trust == UNTRUSTED
    assert texts(wary) == ["diet=meat", "diet=tofu"]


def test_a_flood_of_untrusted_chunks_does_not_hide_a_trusted_update(tmp_path: Path) -> None:
    """The oracle stops at the first witness, and the first ones are all untrusted."""

    class Slots:
        id = "slots@1"

        def score(self, question: str, pairs: list[tuple[str, str]]) -> list[float]:
            return [float(a.split("=")[1][0] != b.split("=")[1][0]) for a, b in pairs]

    with Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        oracle=PairwiseOracle(Slots()),  # type: ignore[arg-type]
        settings=Settings(respect_trust=True),
        require_qualified=False,
        clock=lambda: NOW,
    ) as memory:
        memory.add("diet=tofu", at=day(1))
        memory.add("diet=meat", at=day(2))
        for number in range(12):
            memory.add(f"diet=fish {number}", at=day(3 + number), trust=UNTRUSTED)
        kept = texts(memory)
        assert "diet=tofu" not in kept
        assert "diet=meat" in kept


def test_outcomes_respect_trust(wary: Memory) -> None:
    (said,) = wary.add("diet=tofu", at=day(1))
    wary.add("diet=meat", at=day(2), trust=UNTRUSTED)
    wary.judge()
    known = wary.outcomes([said])
    assert not known.shadows
    assert [doubt.candidate.chunk.id for doubt in known.doubtful] == [said.id]
    (update,) = wary.add("diet=fish", at=day(3))
    wary.judge()
    assert [s.witness.chunk.id for s in wary.outcomes([said]).shadows] == [update.id]


@pytest.mark.parametrize("level", [-1, 101, True, 0.5, "1", None])
def test_a_level_is_a_small_whole_number(memory: Memory, level: object) -> None:
    with pytest.raises(InvalidInputError, match="whole number from 0"):
        memory.add("diet=meat", trust=level)  # type: ignore[arg-type]


def test_erasing_and_changing_are_bounded_by_trust_where_asked_for(memory: Memory) -> None:
    (said,) = memory.add("diet=tofu", user_id="ana", metadata={"x": 1})
    (lie,) = memory.add("diet=meat", user_id="ana", trust=UNTRUSTED)
    (other,) = memory.add("diet=soup", user_id="ana", trust=UNTRUSTED)
    with pytest.raises(TrustError, match="trust 1"):
        memory.delete(said.id, max_trust=UNTRUSTED)
    with pytest.raises(TrustError, match="0 or below"):
        memory.update(said.id, metadata={}, max_trust=UNTRUSTED)
    with pytest.raises(ChunkNotFoundError):  # a scope comes first: nothing is told of others
        memory.delete(said.id, user_id="bob", max_trust=UNTRUSTED)
    assert memory.forget(ids=[said.id, other.id], max_trust=UNTRUSTED) == 1
    assert memory.forget(ids=[said.id], filters={"x": 1}, max_trust=UNTRUSTED) == 0
    assert memory.update(lie.id, metadata={"a": 1}, max_trust=UNTRUSTED).metadata == {"a": 1}
    assert memory.forget(user_id="ana", max_trust=UNTRUSTED) == 1
    assert memory.get_all() == (said,)
    assert memory.forget(user_id="ana") == 1
