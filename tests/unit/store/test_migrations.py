"""Stores of every earlier schema open as they were."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gcmem import Memory
from gcmem.indexed_text import TEXT_VERSION
from gcmem.protocols import ScoreKey
from gcmem.store.digests import question_digest
from gcmem.store.sqlite.file import APPLICATION_ID, MIGRATIONS
from gcmem.testing import HashEncoder
from gcmem.types import TRUSTED, ChunkFilter
from tests.unit.cli.test_commands import gcmem

SCRIPTS = sorted(MIGRATIONS.glob("*.sql"))
ENCODER = HashEncoder()
OLD_SCORES = [
    ("a", "b", "model@1", 0.75),
    ("a", "b", "model@1 at a glance", 0.5),
    ("a", "option 1", "model@1", 0.25),
]


def old_store(path: Path, version: int) -> None:
    """Makes a store as the version wrote it, with two chunks and what it knew about them."""
    connection = sqlite3.connect(path)
    for script in SCRIPTS[:version]:
        connection.executescript(script.read_text("utf-8"))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("INSERT INTO meta VALUES ('encoder_id', ?)", (ENCODER.id,))
    columns = "id, user_id, at, recorded_at, speaker, text, metadata"
    for name, text in (("a", "tea one"), ("b", "tea two")):
        connection.execute(
            f"INSERT INTO chunks ({columns}) VALUES (?, 'ana', 0, 0, 'user', ?, '{{}}')",
            (name, text),
        )
    for seq, vector in enumerate(ENCODER.encode(["tea one", "tea two"]), 1):
        connection.execute("INSERT INTO vectors VALUES (?, ?)", (seq, vector.tobytes()))
    if 2 <= version < 5:
        connection.executemany(
            "INSERT INTO verdicts (older, newer, oracle, question, score) VALUES (?, ?, ?, ?, ?)",
            [(old, new, by, question_digest("?"), score) for old, new, by, score in OLD_SCORES],
        )
    if version >= 3:
        connection.execute("INSERT INTO edges VALUES ('a', 'b', 'model@1', 0.75)")
    if version >= 6:
        connection.execute("INSERT INTO meta VALUES ('words_missing', '1')")
    connection.commit()
    connection.close()


def test_doctor_says_that_an_older_store_can_find_more(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    gcmem("add", "tea", path=path)
    assert "speakers" not in gcmem("doctor", path=path)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM meta WHERE key = 'text_version'")
    connection.commit()
    connection.close()
    assert "embedded without the speakers' names" in gcmem("doctor", path=path)
    gcmem("reindex", path=path)
    assert "speakers" not in gcmem("doctor", path=path)


@pytest.mark.parametrize("version", range(1, len(SCRIPTS)))
def test_an_older_store_opens_with_everything(tmp_path: Path, version: int) -> None:
    old_store(tmp_path / "m.db", version)
    with Memory(tmp_path / "m.db", encoder=ENCODER) as memory:
        found = memory.candidates("tea", user_id="ana")
        assert sorted(item.chunk.text for item in found) == ["tea one", "tea two"]
        assert {item.chunk.trust for item in found} == {TRUSTED}
        assert memory.store.words is not None
        by_words = memory.store.words.search("one?", k=5, where=ChunkFilter())
        assert [chunk_id for chunk_id, _ in by_words] == ["a"]
        assert memory.store.index.text_version == 1
        (third,) = memory.add("tea three", user_id="ana")
        assert third.seq == 3
        assert len(memory.candidates("tea", user_id="ana")) == 3
        assert memory.pending() == 3  # conflicts between whole chunks are judged anew, as claims
        if 2 <= version < 5:
            scores = memory.store.scores
            assert scores is not None
            key = ScoreKey(scorer="model@1", question="?")
            assert scores.get(key, [("a", "b")]) == {("a", "b"): 0.75}
            glance = ScoreKey(scorer="model@1", question="?", kind="glance")
            assert scores.get(glance, [("a", "b")]) == {("a", "b"): 0.5}
            stance = ScoreKey(scorer="model@1", question="?", kind="stance")
            assert scores.get(stance, [("a", "1")]) == {("a", "1"): 0.25}
        assert memory.store.index.rebuild(ENCODER) == 3
        assert memory.store.index.text_version == TEXT_VERSION
        assert len(memory.candidates("tea", user_id="ana")) == 3
