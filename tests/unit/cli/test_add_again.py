"""gcmem add --file: importing again adds only what is new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcmem import Memory, Turn
from gcmem.errors import InvalidInputError
from gcmem.ingest import name_turns
from gcmem.testing import HashEncoder
from gcmem.types import Scope
from tests.unit.cli.test_commands import gcmem


def write(file: Path, *texts: str, timed: bool = True) -> Path:
    """Writes a session file with one message a day."""
    lines = [
        {"role": "user", "content": text}
        | ({"timestamp": f"2026-01-{day:02}T00:00:00Z"} if timed else {})
        for day, text in enumerate(texts, 1)
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def texts_in(path: Path) -> list[str]:
    rows: list[dict[str, Any]] = json.loads(gcmem("history", "--json", path=path))
    return [row["text"] for row in rows]


def test_the_same_file_twice_is_stored_once_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    file = str(write(tmp_path / "s.jsonl", "I live in Porto.", "I like tea.", "I have a cat."))
    assert "Added 3 messages" in gcmem("add", "--file", file, "--user", "ana", path=path)
    shown = gcmem("add", "--file", file, "--user", "ana", path=path)
    assert "Added 0 of 3 messages" in shown
    assert "3 were there already" in shown
    assert json.loads(gcmem("add", "--file", file, "--user", "ana", "--json", path=path)) == []
    assert texts_in(path) == ["I live in Porto.", "I like tea.", "I have a cat."]
    assert "Added 3 messages" in gcmem("add", "--file", file, "--user", "bob", path=path)


def test_a_file_that_grew_adds_just_the_new_messages(tmp_path: Path) -> None:
    path, file = tmp_path / "m.db", tmp_path / "s.jsonl"
    gcmem("add", "--file", str(write(file, "I live in Porto.", "I like tea.")), path=path)
    write(file, "I live in Porto.", "I like tea.", "I have a cat.")
    shown = gcmem("add", "--file", str(file), path=path)
    assert "Added 1 of 3 messages" in shown
    assert "2 were there already" in shown
    assert texts_in(path) == ["I live in Porto.", "I like tea.", "I have a cat."]


def test_what_a_file_says_twice_stays_twice(tmp_path: Path) -> None:
    path, file = tmp_path / "m.db", tmp_path / "notes.txt"
    file.write_text("I live in Porto.\nI live in Lyon.\nI live in Porto.\n")
    assert "Added 3 messages" in gcmem("add", "--file", str(file), path=path)
    assert "Added 0 of 3" in gcmem("add", "--file", str(file), path=path)
    assert sorted(texts_in(path)) == ["I live in Lyon.", "I live in Porto.", "I live in Porto."]


def test_messages_without_a_time_are_known_by_their_file(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    first = write(tmp_path / "monday.jsonl", "I live in Porto.", timed=False)
    second = write(tmp_path / "friday.jsonl", "I live in Porto.", timed=False)
    gcmem("add", "--file", str(first), path=path)
    assert "Added 0 of 1 message" in gcmem("add", "--file", str(first), path=path)
    assert "Added 1 message " in gcmem("add", "--file", str(second), path=path)


def test_what_was_forgotten_is_added_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    file = str(write(tmp_path / "s.jsonl", "I live in Porto.", "I like tea."))
    added = json.loads(gcmem("add", "--file", file, "--json", path=path))
    gcmem("forget", added[0]["id"], path=path)
    assert "Added 1 of 2 messages" in gcmem("add", "--file", file, path=path)
    assert texts_in(path) == ["I live in Porto.", "I like tea."]


def test_a_long_message_is_one_message_in_several_chunks(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    long = " ".join(f"On day {n} the weather in Porto was fine and warm." for n in range(60))
    file = str(write(tmp_path / "s.jsonl", long))
    shown = gcmem("add", "--file", file, path=path)
    assert "Added 1 message " in shown
    assert "chunks" in shown
    assert "Added 0 of 1 message" in gcmem("add", "--file", file, path=path)


def test_texts_on_the_command_line_are_always_stored(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    for _ in range(2):
        assert "Added 1 message " in gcmem(
            "add", "I live in Porto.", "--at", "2026-01-01T00:00Z", path=path
        )
    assert len(texts_in(path)) == 2


def test_ids_depend_on_all_that_makes_a_message_but_not_on_other_messages() -> None:
    ana = Scope(user_id="ana")
    one, two = Turn(text="a", session="s"), Turn(text="b")

    def ids(*turns: Turn, scope: Scope = ana, source: str = "f") -> list[str | None]:
        return [turn.id for turn in name_turns(turns, scope=scope, source=source)]

    assert ids(one, two) == [*ids(one), *ids(two)]
    assert len(set(ids(one, one, one))) == 3
    assert ids(one, one)[:1] == ids(one)
    others = [
        ids(one, scope=Scope(user_id="bob")),
        ids(one, source="g"),
        ids(Turn(text="a", session="t")),
        ids(Turn(text="a", session="s", speaker="assistant")),
        ids(Turn(text="ab", session="s")),
    ]
    assert ids(one) not in others
    assert len({tuple(other) for other in others}) == len(others)


def test_a_turn_with_an_id_is_stored_under_it_and_only_once() -> None:
    with Memory(":memory:", encoder=HashEncoder()) as memory:
        (chunk,) = memory.add(Turn(text="I live in Porto.", id="first"))
        assert chunk.id == "first"
        with pytest.raises(InvalidInputError, match="exists already"):
            memory.add(Turn(text="I live in Porto.", id="first"))
        with pytest.raises(InvalidInputError, match="id"):
            memory.add(Turn(text="I live in Porto.", id=" "))
