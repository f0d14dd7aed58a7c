from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gcmem import Memory, Scope, Settings, Turn, reindex
from gcmem.errors import ChunkNotFoundError, InvalidInputError
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import Prompt, Reading
from tests.conftest import NOW, day, same_slot


def test_a_newer_contradiction_removes_the_old_chunk_and_is_named(memory: Memory) -> None:
    memory.add("diet=vegan", user_id="ana", at=day(1))
    memory.add("diet=omnivore", user_id="ana", at=day(2))
    memory.add("city=porto", user_id="ana", at=day(0))
    result = memory.search("diet city", user_id="ana")
    assert {item.chunk.text for item in result.kept} == {"diet=omnivore", "city=porto"}
    (shadow,) = result.shadows
    assert shadow.candidate.chunk.text == "diet=vegan"
    assert shadow.witness.chunk.text == "diet=omnivore"
    assert shadow.conflict.oracle == "rule@1"
    assert result.shadow_of(shadow.candidate.chunk.id) is shadow
    assert result.shadow_of(shadow.witness.chunk.id) is None
    assert result.timings.total_ms > 0


def test_as_of_and_known_at_ask_two_different_questions(tmp_path: Path) -> None:
    now = [day(10)]
    with Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        clock=lambda: now[0],
    ) as memory:
        memory.add("city=porto", at=day(1))
        now[0] = day(20)
        memory.add("city=lyon", at=day(5))  # learnt late

        def current(**when: object) -> list[str]:
            return [c.chunk.text for c in memory.search("city", **when).kept]  # type: ignore[arg-type]

        assert current() == ["city=lyon"]
        assert current(as_of=day(4)) == ["city=porto"]
        assert current(known_at=day(15)) == ["city=porto"]
        assert current(as_of=day(5), known_at=day(20)) == ["city=lyon"]


def test_add_takes_every_shape_of_message(memory: Memory) -> None:
    stored = memory.add(
        [
            "plain",
            Turn(text="turn", at=day(3), speaker="ana", session="s1", metadata={"a": 2}),
            {"role": "assistant", "content": "dict"},
            {"role": "user", "content": [{"type": "text", "text": "parts"}, {"type": "image"}]},
            {"content": "dated", "created_at": "2026-01-02T00:00:00+01:00"},
            {"content": "epoch", "timestamp": 1767225600},
        ],
        user_id="ana",
        at=day(9),
        session="s0",
        metadata={"a": 1, "b": 1},
    )
    assert [c.text for c in stored] == ["plain", "turn", "dict", "parts", "dated", "epoch"]
    assert [c.speaker for c in stored] == ["user", "ana", "assistant", "user", "user", "user"]
    assert [c.session for c in stored] == ["s0", "s1", "s0", "s0", "s0", "s0"]
    assert stored[1].at == day(3)
    assert stored[0].at == day(9)
    assert stored[4].at is not None
    assert stored[4].at.isoformat() == "2026-01-01T23:00:00+00:00"
    assert stored[5].at == day(0)
    assert stored[1].metadata == {"a": 2, "b": 1}
    assert all(c.scope == Scope(user_id="ana") and c.recorded_at == NOW for c in stored)
    assert memory.add([]) == ()


def test_the_shared_default_metadata_can_not_be_changed(memory: Memory) -> None:
    (chunk,) = memory.add("x", metadata={"a": 1})
    with pytest.raises(TypeError):
        chunk.metadata["a"] = 2  # type: ignore[index]


def test_k_live_chunks_come_back_although_shadows_rank_higher(tmp_path: Path) -> None:
    with Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        settings=Settings(stm_size=0, overfetch=3),
        clock=lambda: NOW,
    ) as memory:
        for n in range(4):
            memory.add(f"tea={n}", at=day(n))
        memory.add("tea and cake", at=day(0))
        result = memory.search("tea", k=2)
    assert {item.chunk.text for item in result.kept} == {"tea=3", "tea and cake"}
    assert len(result.shadows) == 3


def test_the_recency_buffer_brings_what_the_index_missed(tmp_path: Path) -> None:
    stream = [f"tea=old {n}" for n in range(40)] + ["newest, other words"]
    for size, expected in ((0, False), (5, True)):
        with Memory(
            tmp_path / f"{size}.db",
            encoder=HashEncoder(),
            settings=Settings(stm_size=size, overfetch=1, strategy="paper"),
            oracle=RuleOracle(lambda a, b: False),
            require_qualified=False,
            clock=lambda: NOW,
        ) as memory:
            for n, text in enumerate(stream):
                memory.add(text, at=day(n))
            found = {c.chunk.text: c.origin for c in memory.search("tea=old", k=3).candidates}
        assert (found.get("newest, other words") == "stm") is expected


def test_three_paths_read_the_same_frozen_set(memory: Memory) -> None:
    memory.add("diet=vegan", at=day(1))
    memory.add("diet=meat", at=day(2))
    standard, timestamp, gcmem = memory.ask_paths("diet", options=["vegan", "meat"])
    assert [answer.path for answer in (standard, timestamp, gcmem)] == [
        "standard",
        "timestamp",
        "gcmem",
    ]
    assert {c.chunk.id for c in standard.resolution.kept} == {
        c.chunk.id for c in timestamp.resolution.kept
    }
    assert [c.chunk.text for c in timestamp.resolution.kept] == ["diet=meat", "diet=vegan"]
    assert [c.chunk.text for c in gcmem.resolution.kept] == ["diet=meat"]
    assert gcmem.choice == "meat"


def test_history_get_all_delete_and_forget(memory: Memory) -> None:
    b, a = memory.add([Turn(text="b", at=day(2)), Turn(text="a", at=day(1))], user_id="ana")
    memory.add("c", user_id="bob", at=day(3), metadata={"tag": "x"})
    assert [c.text for c in memory.history(user_id="ana")] == ["a", "b"]
    assert [c.text for c in memory.history(newest_first=True, limit=2)] == ["c", "b"]
    assert [c.text for c in memory.get_all(user_id="ana")] == ["b", "a"]
    assert [c.text for c in memory.get_all(limit=1, after_seq=b.seq or 0)] == ["a"]
    memory.delete(a.id)
    with pytest.raises(ChunkNotFoundError):
        memory.get(a.id)
    assert memory.forget(filters={"tag": "x"}) == 1
    assert memory.forget(ids=[b.id, a.id]) == 1
    assert memory.get_all() == ()
    memory.add(["x", "y"], user_id="ana")
    assert memory.forget(user_id="ana") == 2


def test_what_is_forgotten_is_not_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add("the secret word is xylophone", user_id="ana")
        memory.forget(user_id="ana")
        for file in tmp_path.iterdir():
            assert b"xylophone" not in file.read_bytes()


def test_modes_show_at_most_k(memory: Memory) -> None:
    for n in range(6):
        memory.add(f"tea={n}", at=day(n))
    memory.add("tea and cake", at=day(0))
    drop, demote, annotate = (
        memory.search("tea", k=3, mode=mode) for mode in ("drop", "demote", "annotate")
    )
    assert {c.chunk.text for c in drop} == {"tea=5", "tea and cake"}
    assert [c.chunk.text for c in demote][:2] == [c.chunk.text for c in drop]
    assert len(demote) == 3
    assert [demote[0], demote[-1]] == [demote.ranked[0], demote.ranked[2]]
    assert list(annotate) == list(annotate.candidates.items[:3])


def test_among_equals_the_newest_are_found(tmp_path: Path) -> None:
    with Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        settings=Settings(stm_size=0),
    ) as memory:
        memory.add(["the same words"] * 500)
        assert [c.chunk.seq for c in memory.search("the same words", k=3)] == [500, 499, 498]


def test_another_encoder_can_take_over_a_store(tmp_path: Path) -> None:
    path, other = tmp_path / "m.db", HashEncoder(name="other", dimensions=16)
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add("tea")
    assert reindex(path, encoder=other) == 1
    with Memory(path, encoder=other) as memory:
        assert [c.chunk.text for c in memory.search("tea")] == ["tea"]


def test_update_replaces_metadata_and_nothing_else(memory: Memory) -> None:
    (chunk,) = memory.add("a", user_id="ana", at=day(1), metadata={"tag": "x", "n": 1})
    updated = memory.update(chunk.id, metadata={"tag": "y"}, user_id="ana")
    assert updated == replace(chunk, metadata={"tag": "y"})
    assert memory.get(chunk.id) == updated
    assert memory.get_all(filters={"tag": "x"}) == ()
    assert [item.chunk for item in memory.search("a", filters={"tag": "y"})] == [updated]
    with pytest.raises(ChunkNotFoundError):
        memory.update(chunk.id, metadata={}, user_id="bob")
    with pytest.raises(InvalidInputError, match="plain JSON"):
        memory.update(chunk.id, metadata={"a": object()})
    assert memory.get(chunk.id) == updated


def test_a_reader_sees_the_chunks_that_a_search_with_the_same_k_returns(memory: Memory) -> None:
    class Recorder:
        id = "recorder@1"
        seen: tuple[str, ...] = ()

        def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
            Recorder.seen = tuple(chunk.id for chunk in prompts[0].chunks)
            return tuple(Reading(text="unclear") for _ in prompts)

    memory.add([f"tea number {n}" for n in range(40)], user_id="ana", at=day(1))
    memory.reader = Recorder()
    for k in (1, 5, 12):
        answer = memory.ask("tea", user_id="ana", k=k)
        found = memory.search("tea", user_id="ana", k=k)
        assert Recorder.seen == tuple(hit.chunk.id for hit in found) != ()
        assert answer.resolution.kept == found.kept


def test_newest_first_orders_the_chunks_that_a_plain_search_shows(memory: Memory) -> None:
    memory.add("tea is what I drink", user_id="ana", at=day(1))
    memory.add([f"rain {n}" for n in range(30)], user_id="ana", at=day(2))
    memory.add("tea is my drink", user_id="ana", at=day(3))
    standard, timestamp = memory.ask_paths(
        "tea drink", user_id="ana", k=2, paths=("standard", "timestamp")
    )
    texts = [item.chunk.text for item in timestamp.resolution.kept]
    assert texts == ["tea is my drink", "tea is what I drink"]
    assert {item.chunk.text for item in standard.resolution.kept} == set(texts)
