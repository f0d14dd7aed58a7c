"""A backup is taken from a store in use, and holds all that was acknowledged before it began."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gcmem import Memory
from gcmem.errors import InvalidInputError, StoreError
from gcmem.testing import HashEncoder
from gcmem.types import Chunk
from tests.serve.conftest import Running, start
from tests.unit.cli.test_commands import gcmem

WRITERS = 3


def ids_in(path: Path) -> set[str]:
    with Memory(path) as memory:
        assert memory.store.log.check() is None  # type: ignore[attr-defined]
        return {chunk.id for chunk in memory.get_all()}


def test_a_backup_of_a_busy_server_holds_every_add_acknowledged_before_it(tmp_path: Path) -> None:
    server = start(tmp_path, "--rate", "0")
    acknowledged: list[str] = []
    stopped = threading.Event()
    threads = [
        threading.Thread(target=write, args=(server, n, acknowledged, stopped))
        for n in range(WRITERS)
    ]
    copies = []
    try:
        for thread in threads:
            thread.start()
        for n in range(2):
            while len(acknowledged) < 10 * (n + 1):
                time.sleep(0.01)
            before = set(acknowledged)
            copy = tmp_path / f"copy {n}.db"
            gcmem("backup", str(copy), path=server.store)
            during = set(acknowledged) - before
            assert during, "nothing was written while the backup ran"
            copies.append((copy, before))
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
        server.process.terminate()
        assert server.process.wait(30) == 0
    for copy, before in copies:
        assert before <= ids_in(copy)
    assert not list(tmp_path.glob("*.tmp*"))


def write(server: Running, number: int, acknowledged: list[str], stopped: threading.Event) -> None:
    count = 0
    while not stopped.is_set():
        count += 1
        body = {"messages": [f"Fact {count} of writer {number}."], "user_id": "ana"}
        status, reply = server.post("/v1/memories", body)
        assert status == 201
        acknowledged += [memory["id"] for memory in reply["memories"]]


def test_writers_neither_wait_for_a_backup_nor_start_it_over(tmp_path: Path) -> None:
    """Every page that is copied meets a write: the copy is of the moment at which it began."""
    with Memory(tmp_path / "m.db", encoder=HashEncoder()) as memory:
        memory.add([f"fact {n} " + "and so on " * 30 for n in range(3000)], user_id="ana")
        steps: list[int] = []

        def write(done: int, total: int) -> None:
            steps.append(done)
            memory.add(f"added during step {done}", user_id="ana")

        memory.backup(tmp_path / "copy.db", progress=write)
        assert len(steps) > 3
        assert steps == sorted(steps)
        assert len(memory.get_all()) == 3000 + len(steps)
    with Memory(tmp_path / "copy.db", encoder=HashEncoder()) as copy:
        assert len(copy.get_all()) == 3000


def test_a_backup_replaces_nothing_unless_told(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    with Memory(tmp_path / "m.db", encoder=HashEncoder()) as memory:
        memory.add("first", user_id="ana")
        memory.backup(target)
        memory.add("second", user_id="ana")
        with pytest.raises(InvalidInputError, match="exists"):
            memory.backup(target)
        memory.backup(target, overwrite=True)
        for same in (tmp_path / "m.db", tmp_path / "folder" / ".." / "m.db"):
            (tmp_path / "folder").mkdir(exist_ok=True)
            with pytest.raises(InvalidInputError, match="the store itself"):
                memory.backup(same, overwrite=True)
        with pytest.raises(InvalidInputError, match="folder"):
            memory.backup(tmp_path / "folder", overwrite=True)
        with pytest.raises(StoreError, match="nowhere"):
            memory.backup(tmp_path / "nowhere" / "copy.db")
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with Memory(target, encoder=HashEncoder()) as copy:
        assert [chunk.text for chunk in copy.get_all()] == ["first", "second"]
        with (
            Memory(tmp_path / "m.db", encoder=HashEncoder()) as memory,
            pytest.raises(InvalidInputError, match="in use"),
        ):
            memory.backup(target, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"m.db", "copy.db", "folder"}


def test_a_store_in_memory_can_be_kept(tmp_path: Path) -> None:
    with Memory(":memory:", encoder=HashEncoder()) as memory:
        memory.add("a fact", user_id="ana")
        memory.backup(tmp_path / "kept.db")
    with Memory(tmp_path / "kept.db", encoder=HashEncoder()) as kept:
        assert [chunk.text for chunk in kept.get_all()] == ["a fact"]


def test_a_backup_that_was_killed_leaves_no_file_under_the_name(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", encoder=HashEncoder()) as memory:
        memory.add([f"fact {n} " + "and so on " * 30 for n in range(3000)], user_id="ana")

        def fail(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.backup(tmp_path / "copy.db", progress=fail)
    assert {path.name for path in tmp_path.iterdir()} == {"m.db"}


def test_the_command_says_what_is_in_the_copy_and_that_keys_are_not(tmp_path: Path) -> None:
    path, copy = tmp_path / "m.db", tmp_path / "copy.db"
    gcmem("add", "I live in Porto.", "--user", "ana", path=path)
    shown = gcmem("backup", str(copy), path=path)
    assert "1 chunk " in shown
    assert "keys" not in shown
    gcmem("keys", "create", "ana", path=path)
    assert "exists" in gcmem("backup", str(copy), path=path, code=2)
    assert "m.db.keys" in gcmem("backup", str(copy), "--force", path=path).replace("\n", "")
    assert "I live in Porto." in gcmem("history", path=copy)
    assert "no store" in gcmem("backup", str(copy), path=tmp_path / "none.db", code=2)


def test_a_server_store_names_the_tool_that_backs_it_up(tmp_path: Path, postgres_url: str) -> None:
    said = gcmem("backup", str(tmp_path / "copy.db"), "--store", postgres_url, code=1)
    assert "pg_dump" in said
    assert not (tmp_path / "copy.db").exists()


def test_a_plain_copy_of_a_store_in_use_lacks_what_is_in_the_log(tmp_path: Path) -> None:
    """Why there is a command for it."""
    with Memory(tmp_path / "m.db", encoder=HashEncoder()) as memory:
        added = memory.add([f"fact {n}" for n in range(40)], user_id="ana")
        # By another process: closing the file in this one would release the store's locks.
        subprocess.run(
            [sys.executable, "-c", "import shutil, sys; shutil.copy(*sys.argv[1:])",
             str(tmp_path / "m.db"), str(tmp_path / "plain.db")], check=True,
        )  # fmt: skip
        memory.backup(tmp_path / "copy.db")
    assert _count(tmp_path / "plain.db", added) == 0
    assert _count(tmp_path / "copy.db", added) == 40


def _count(path: Path, chunks: tuple[Chunk, ...]) -> int:
    with Memory(path, encoder=HashEncoder()) as memory:
        return len(memory.store.log.get([chunk.id for chunk in chunks]))
