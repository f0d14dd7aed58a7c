"""Verdicts through the MCP server: what a model is told about them, and what it may record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gcmem import Memory, Settings
from gcmem.testing import HashEncoder
from gcmem.types import UNTRUSTED, Chunk
from tests.conftest import day
from tests.serve.slot_judge import WHY, SlotJudge, judging_memory
from tests.unit.serve.test_mcp import call, error, value

JUDGE = "slots@1 on gcmem-claims@1"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with judging_memory(tmp_path / "m.db") as memory:
        yield memory


def remember(memory: Memory, *texts: str, user_id: str = "ana", **fields: Any) -> list[Chunk]:
    """Adds one text a day."""
    return [
        memory.add(text, user_id=user_id, at=day(number), **fields)[0]
        for number, text in enumerate(texts)
    ]


def kept(memory: Memory, query: str = "Where do I live?") -> set[str]:
    return {m["text"] for m in value(memory, "search_memories", query=query)["kept"]}


def test_a_memory_that_may_be_outdated_is_marked(memory: Memory) -> None:
    old, new = remember(memory, "My cat is called Tom.", "My cat is perhaps called Tim.")
    for found in (
        value(memory, "search_memories", query="cat"),
        value(memory, "ask_memory", question="cat"),
    ):
        notes = {m["id"]: m["note"] for m in found["kept"]}
        assert notes == {old.id: f"may be outdated: see {new.id}", new.id: None}
        (doubt,) = found["doubtful"]
        assert (doubt["memory"]["id"], doubt["witness"]["id"]) == (old.id, new.id)
        assert (doubt["claim"], doubt["witness_claim"]) == (old.text, new.text)
        assert (doubt["score"], doubt["oracle"], doubt["by"]) == (0.6, JUDGE, "model")
        assert doubt["reason"] == WHY
        assert found["shadows"] == found["unjudged"] == []
    told = value(memory, "explain_shadow", memory_id=old.id)
    assert told["live"]
    assert told["shadow"] is None
    assert told["doubt"] == doubt


def test_doubts_about_what_is_not_shown_are_left_out(memory: Memory) -> None:
    remember(memory, "My cat is called Tom.", "My cat is perhaps called Tim.")
    found = value(memory, "search_memories", query="My cat is perhaps called Tim.", k=1)
    assert [m["text"] for m in found["kept"]] == ["My cat is perhaps called Tim."]
    assert found["doubtful"] == []


def test_an_outdated_sentence_is_left_out_of_its_memory(memory: Memory) -> None:
    old, _ = remember(memory, "I live in Porto. My cat is called Tom.", "I live in Lisbon.")
    found = value(memory, "search_memories", query="Where does my cat live?")
    texts = {m["id"]: m["text"] for m in found["kept"]}
    assert texts[old.id] == "My cat is called Tom."
    (shadow,) = found["shadows"]
    assert shadow["memory"]["text"] == old.text
    assert (shadow["claim"], shadow["whole"]) == ("I live in Porto.", False)
    told = value(memory, "explain_shadow", memory_id=old.id, question="Where does my cat live?")
    assert told["live"]
    assert told["shadow"] == shadow


@pytest.mark.parametrize("view", ["past", "changes"])
def test_what_is_no_longer_true_is_marked_where_the_past_is_asked_for(
    memory: Memory, view: str
) -> None:
    old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
    for found in (
        value(memory, "search_memories", query="Where do I live?", view=view),
        value(memory, "ask_memory", question="Where do I live?", view=view),
    ):
        assert found["view"] == view
        notes = {m["id"]: m["note"] for m in found["kept"]}
        assert notes == {old.id: f"no longer true since 2026-01-02: see {new.id}", new.id: None}
        assert [shadow["memory"]["id"] for shadow in found["shadows"]] == [old.id]
        if view == "changes":
            assert [m["id"] for m in found["kept"]] == [old.id, new.id]


def test_the_words_of_a_question_choose_its_view(memory: Memory) -> None:
    old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
    for question, view, shown in (
        ("Where do I live?", "current", {new.id}),
        ("Where did I live before?", "past", {old.id, new.id}),
    ):
        for found in (
            value(memory, "search_memories", query=question),
            value(memory, "ask_memory", question=question),
        ):
            assert found["view"] == view
            assert {m["id"] for m in found["kept"]} == shown
    assert "view" in error(memory, "search_memories", query="x", view="future")


def test_a_sentence_that_is_no_longer_true_marks_its_memory_in_part(memory: Memory) -> None:
    old, new = remember(memory, "I live in Porto. My cat is called Tom.", "I live in Lisbon.")
    found = value(memory, "search_memories", query="Where does my cat live?", view="past")
    notes = {m["text"]: m["note"] for m in found["kept"]}
    assert notes[old.text] == f"partly no longer true since 2026-01-02: see {new.id}"
    now = value(memory, "search_memories", query="Where does my cat live?")
    assert {m["text"]: m["note"] for m in now["kept"]} == {
        "My cat is called Tom.": None, new.text: None
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::gcmem.errors.UnqualifiedOracleWarning")
def test_a_judge_that_may_not_remove_only_raises_doubts(tmp_path: Path) -> None:
    with Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        judge=SlotJudge(),
        settings=Settings(judge="manual", judge_budget_ms=10_000),
        require_qualified=True,
    ) as memory:
        old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
        for view in ("current", "past"):
            for found in (
                value(memory, "search_memories", query="Where do I live?", view=view),
                value(memory, "ask_memory", question="Where do I live?", view=view),
            ):
                notes = {m["id"]: m["note"] for m in found["kept"]}
                assert notes == {old.id: f"may be outdated: see {new.id}", new.id: None}


def test_what_nobody_has_judged_is_named(tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db", judge_budget_ms=0) as memory:
        (chunk,) = remember(memory, "I live in Porto.")
        assert value(memory, "search_memories", query="live")["unjudged"] == [chunk.id]


def test_a_pinned_memory_stays_until_it_is_unpinned(memory: Memory) -> None:
    old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
    assert kept(memory) == {new.text}
    assert value(memory, "pin_memory", memory_id=old.id) == {"id": old.id, "pinned": True}
    assert kept(memory) == {old.text, new.text}
    assert value(memory, "unpin_memory", memory_id=old.id) == {"id": old.id, "pinned": False}
    assert kept(memory) == {new.text}


def test_a_person_s_word_counts_until_it_is_taken_back(memory: Memory) -> None:
    old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
    pair = {"older": old.id, "newer": new.id}
    said = value(memory, "reject_outdated", **pair, reason="I have two homes.")
    assert said.pop("recorded_at")
    assert said == {**pair, "score": 0.0, "oracle": "user", "reason": "I have two homes."}
    assert kept(memory) == {old.text, new.text}
    assert value(memory, "confirm_outdated", **pair)["score"] == 1.0
    assert kept(memory) == {new.text}
    value(memory, "reject_outdated", **pair)
    assert value(memory, "reject_outdated", **pair, undo=True)["score"] == -1.0
    assert kept(memory) == {new.text}  # the model decides again


def test_what_still_stands_is_listed_in_pages(memory: Memory) -> None:
    remember(memory, "I live in Porto. My cat is called Tom.", "I live in Lisbon.")
    assert value(memory, "current_memories") == {"claims": [], "next": None, "pending": 2}
    memory.judge()
    first = value(memory, "current_memories", limit=1)
    assert [claim["text"] for claim in first["claims"]] == ["I live in Lisbon."]
    rest = value(memory, "current_memories", cursor=first["next"])
    assert [claim["text"] for claim in rest["claims"]] == ["My cat is called Tom."]
    assert rest["next"] is None
    assert rest["pending"] == 0


def test_no_word_reaches_another_scope(memory: Memory) -> None:
    mine, _ = remember(memory, "I live in Porto.", "I live in Lisbon.")
    theirs, newer = remember(memory, "I live in Rome.", "I live in Oslo.", user_id="bob")
    memory.judge()
    for tool in ("pin_memory", "unpin_memory"):
        assert "ChunkNotFoundError" in error(memory, tool, memory_id=theirs.id)
    for tool in ("confirm_outdated", "reject_outdated"):
        for pair in ((theirs, newer), (mine, theirs), (theirs, mine)):
            ids = {"older": pair[0].id, "newer": pair[1].id}
            assert "ChunkNotFoundError" in error(memory, tool, **ids)
            assert "ChunkNotFoundError" in error(memory, tool, **ids, undo=True)
    shown = value(memory, "current_memories")["claims"]
    assert [claim["text"] for claim in shown] == ["I live in Lisbon."]


def test_a_server_for_untrusted_sources_speaks_only_about_what_is_untrusted(
    memory: Memory,
) -> None:
    said, _ = remember(memory, "I live in Porto.", "I live in Lisbon.")
    lies = remember(memory, "I live in Rome.", "I live in Oslo.", trust=UNTRUSTED)
    for tool in ("confirm_outdated", "reject_outdated"):
        for older, newer in ((said, lies[0]), (lies[0], said)):
            refusal = error(memory, tool, trust=UNTRUSTED, older=older.id, newer=newer.id)
            assert "TrustError" in refusal
        allowed = call(memory, tool, trust=UNTRUSTED, older=lies[0].id, newer=lies[1].id)
        assert not allowed.is_error
    for tool in ("pin_memory", "unpin_memory"):
        refusal = error(memory, tool, trust=UNTRUSTED, memory_id=lies[0].id)
        assert "ForbiddenError" in refusal


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("confirm_outdated", {"older": "a"}, "Field required"),
        ("confirm_outdated", {"older": "a", "newer": "b"}, "ChunkNotFoundError: no chunk 'a'"),
        ("reject_outdated", {"older": "a", "newer": "b", "reason": "x" * 1001}, "1000 characters"),
        ("current_memories", {"limit": 0}, "greater than or equal to 1"),
        ("current_memories", {"cursor": "e30"}, "InvalidInputError: 'e30' is not a cursor"),
        ("pin_memory", {"memory_id": "nothing"}, "ChunkNotFoundError: no chunk 'nothing'"),
    ],
)
def test_errors_are_told_to_the_model(
    memory: Memory, tool: str, arguments: dict[str, Any], message: str
) -> None:
    assert message in error(memory, tool, **arguments)
