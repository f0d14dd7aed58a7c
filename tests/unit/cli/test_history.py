"""gcmem history and judge: the timeline, and what is known to be outdated."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.unit.cli.test_commands import gcmem

LONG = "My cat is called Rui, and he sleeps on the warm keyboard of my laptop while I try to work."
CHAT = (
    ("2026-01-01T09:30:00Z", "user", "I live in Porto."),
    ("2026-01-02T00:00:00Z", "assistant", LONG),
    ("2026-02-01T00:00:00Z", "user", "I no longer live in Porto, I live in Lyon now."),
)
WIDTH = 80


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    file = tmp_path / "chat.jsonl"
    rows = [{"at": at, "role": role, "text": text} for at, role, text in CHAT]
    file.write_text("\n".join(map(json.dumps, rows)))
    gcmem("add", "--file", str(file), "--user", "ana", path=path)
    return path


def test_outdated_lines_are_marked_and_unjudged_ones_named(store: Path) -> None:
    shown = gcmem("history", path=store)
    assert "3 chunks have not been judged yet" in shown
    assert f"gcmem judge --path {store}" in shown
    assert "outdated since" not in shown
    gcmem("judge", path=store)
    shown = gcmem("history", path=store)
    assert "outdated since 2026-02-01" in shown
    assert shown.count("outdated since") == 1
    assert shown.index("I live in Porto.") < shown.index("outdated since") < shown.index("My cat")
    assert "judged yet" not in shown
    rows = json.loads(gcmem("history", "--json", path=store))
    assert [row["shadowed_by"] for row in rows[1:]] == [None, None]
    assert rows[0]["shadowed_by"]["witness"] == rows[2]["id"]
    assert set(rows[0]["shadowed_by"]) == {
        "witness", "score", "oracle", "by", "reason", "ended"
    }  # fmt: skip
    assert [row["judged"] for row in rows] == [True, True, True]


def test_what_is_added_after_judging_is_not_judged_yet(store: Path) -> None:
    gcmem("judge", path=store)
    gcmem("add", "I have a dog.", path=store)
    shown = gcmem("history", path=store)
    assert "1 chunk has not been judged yet" in shown
    rows = json.loads(gcmem("history", "--json", path=store))
    assert [row["judged"] for row in rows] == [True, True, True, False]


def test_a_verdict_is_not_shown_to_a_read_that_can_not_see_the_newer_chunk(store: Path) -> None:
    gcmem("judge", path=store)
    assert "outdated since" not in gcmem("history", "--as-of", "2026-01-15T00:00Z", path=store)


def test_lines_fit_80_columns_with_dates_and_speakers(store: Path) -> None:
    gcmem("judge", path=store)
    shown = gcmem("history", path=store, COLUMNS=str(WIDTH))
    lines = shown.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert any("2026-01-01 09:30" in line and "I live in Porto." in line for line in lines)
    assert any("assistant" in line and "My cat is called Rui" in line for line in lines)
    assert len(lines) < 14
    ids = [row["id"] for row in json.loads(gcmem("history", "--json", path=store))]
    assert not any(chunk_id in shown for chunk_id in ids)
    with_ids = gcmem("history", "--ids", path=store, COLUMNS=str(WIDTH))
    assert all(chunk_id in with_ids for chunk_id in ids)


def test_a_limit_says_how_many_there_are(store: Path) -> None:
    assert "2 of 3 chunks" in gcmem("history", "--limit", "2", path=store)
    assert "3 chunks in" in gcmem("history", path=store)
    assert "0 chunks" in gcmem("history", "--user", "nobody", path=store)
    assert "limit" in gcmem("history", "--limit", "-1", path=store, code=2)


def test_judge_says_what_it_found(store: Path) -> None:
    gcmem("add", "I have a dog.", "--user", "ana", path=store)
    shown = gcmem("judge", "--limit", "1", path=store)
    assert "Judged 1 of 4 chunks" in shown
    assert "0 conflicts" in shown
    assert "3 are left" in shown
    told = json.loads(gcmem("judge", "--json", path=store))
    assert told == {"judged": 3, "conflicts": 1}
    assert "nothing new to judge" in gcmem("judge", path=store)


def test_a_memory_can_not_send_commands_to_the_terminal(store: Path) -> None:
    gcmem("add", "red \x1b[31m alert \x07\x9b2J", path=store)
    for command in (("history",), ("search", "red alert"), ("ask", "Is there a red alert?")):
        shown = gcmem(*command, path=store)
        assert "alert" in shown
        assert not {"\x1b", "\x07", "\x9b"} & set(shown)


def test_on_a_terminal_every_line_fits(store: Path) -> None:
    gcmem("judge", path=store)
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "gcmem", "history", "--path", str(store)],
        stdout=side,
        stderr=side,
        env={**environment, "TERM": "dumb"},
    ) as process:
        os.close(side)
        shown = _read_all(main)
    assert process.returncode == 0
    assert "outdated since" in shown
    assert max(len(line.rstrip("\r")) for line in shown.split("\n")) <= WIDTH


def _read_all(file: int) -> str:
    parts = []
    try:
        while part := os.read(file, 4096):
            parts.append(part)
    except OSError:  # how Linux says that the other side was closed
        pass
    os.close(file)
    return b"".join(parts).decode()
