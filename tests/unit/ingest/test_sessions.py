from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gcmem.errors import SessionFormatError
from gcmem.ingest import read_session_file

SHAPES: dict[str, Any] = {
    "list of messages": [
        {"role": "user", "content": "hello", "timestamp": "2026-01-01T00:00:00Z"},
        {"role": "assistant", "content": "hi", "timestamp": "2026-01-01T00:01:00Z"},
    ],
    "chat request": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": "hi"},
        ]
    },
    "sharegpt": [
        {
            "id": "s",
            "conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}],
        }
    ],
    "claude": [
        {
            "uuid": "s",
            "name": "title",
            "chat_messages": [
                {"sender": "human", "text": "hello", "created_at": "2026-01-01T00:00:00.5Z"},
                {"sender": "assistant", "text": "hi", "created_at": "2026-01-01T00:00:01Z"},
            ],
        }
    ],
    "chatgpt": [
        {
            "title": "t",
            "conversation_id": "s",
            "current_node": "c",
            "mapping": {
                "root": {"message": None, "parent": None},
                "sys": {
                    "message": {"author": {"role": "system"}, "content": {"parts": ["be nice"]}},
                    "parent": "root",
                },
                "a": {
                    "message": {
                        "author": {"role": "user"},
                        "content": {"content_type": "text", "parts": ["hello"]},
                        "create_time": 1767225600.25,
                    },
                    "parent": "sys",
                },
                "abandoned": {
                    "message": {"author": {"role": "assistant"}, "content": {"parts": ["no"]}},
                    "parent": "a",
                },
                "c": {
                    "message": {"author": {"role": "assistant"}, "content": {"parts": ["hi"]}},
                    "parent": "a",
                },
            },
        }
    ],
    "slack": [
        {"type": "message", "user": "U1", "text": "hello", "ts": "1767225600.000200"},
        {"type": "message", "user": "U2", "text": "hi", "ts": "1767225601.000200"},
        {"type": "message", "user": "U2", "text": "", "ts": "1767225602.000200"},
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("as_lines", [False, True])
def test_every_known_shape_gives_the_same_words(tmp_path: Path, shape: str, as_lines: bool) -> None:
    document = SHAPES[shape]
    file = tmp_path / "s.json"
    if as_lines:
        documents = document if isinstance(document, list) else [document]
        file.write_text("\n".join(json.dumps(d) for d in documents) + "\n\n")
    else:
        file.write_text(json.dumps(document))
    turns = read_session_file(file)
    assert [turn.text for turn in turns] == ["hello", "hi"]
    if shape in ("chatgpt", "claude", "sharegpt"):
        assert [turn.speaker for turn in turns] == ["user", "assistant"]
        assert {turn.session for turn in turns} == {"s"}
    if shape in ("chatgpt", "claude", "slack", "list of messages"):
        assert turns[0].at is not None
        assert turns[0].at.year == 2026


def test_messages_without_text_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(
        '{"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}\n'
        '{"sender": "human", "text": "", "content": [{"type": "text", "text": "in parts"}]}\n'
        '{"role": "user", "content": [{"type": "image_url"}]}\n'
        '{"role": "user", "content": "one line\u2028still the same"}\n',
        encoding="utf-8",
    )
    assert [t.text for t in read_session_file(file)] == ["in parts", "one line\u2028still the same"]


@pytest.mark.parametrize("when", ["20250101", "2025", 20250101.0 * 1e300])
def test_a_number_that_is_no_epoch_is_not_taken_for_one(tmp_path: Path, when: object) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps([{"text": "x", "date": when}]))
    with pytest.raises(SessionFormatError):
        read_session_file(file)


def test_plain_text_is_one_turn_a_line(tmp_path: Path) -> None:
    file = tmp_path / "s.txt"
    file.write_text("first\n\n second \n")
    assert [turn.text for turn in read_session_file(file)] == ["first", "second"]


def test_times_without_a_timezone_need_one(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('[{"text": "x", "at": "2026-07-01T12:00:00"}]')
    with pytest.raises(SessionFormatError, match="timezone"):
        read_session_file(file)
    (turn,) = read_session_file(file, tz=ZoneInfo("Europe/Rome"))
    assert turn.at is not None
    assert turn.at.isoformat() == "2026-07-01T10:00:00+00:00"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"{not json", "line 1"),
        (b'{"text": "a"}\n{"text": ', "line 2"),
        (b'{"text": "a"}\n[1]', "expected a message"),
        (b'[{"role": "user"}]', "no text"),
        (b'[{"text": "a", "at": "yesterday"}]', "yesterday"),
        (b'[{"text": "a", "at": 1e300}]', "out of range"),
        (b'[{"text": ""}]', "no message"),
        (b"[]", "no message"),
    ],
)
def test_a_file_that_can_not_be_read_says_where_and_why(
    tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "s.json"
    file.write_bytes(content)
    with pytest.raises(SessionFormatError, match=message):
        read_session_file(file)
    with pytest.raises(SessionFormatError, match="can't read"):
        read_session_file(tmp_path / "missing.json")
