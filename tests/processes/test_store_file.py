"""A store file that is taken away, replaced or can't be written is noticed at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gcmem import Memory
from gcmem.errors import StoreReplacedError, StoreUnavailableError
from gcmem.testing import HashEncoder
from tests.serve.conftest import start

AT_ONCE_S = 10


def opened(path: Path) -> Memory:
    return Memory(path, encoder=HashEncoder())


def unlinked(path: Path) -> None:
    path.unlink()


def moved_away(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def replaced(path: Path) -> None:
    other = path.with_name("other.db")
    opened(other).close()
    os.replace(other, path)


def without_its_log(path: Path) -> None:
    path.with_name("m.db-wal").unlink()


@pytest.mark.parametrize("change", [unlinked, moved_away, replaced, without_its_log])
def test_an_add_to_a_file_that_is_no_longer_there_is_not_acknowledged(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    with opened(tmp_path / "m.db") as memory:
        memory.add("a fact", user_id="ana")
        change(tmp_path / "m.db")
        with pytest.raises(StoreReplacedError, match="open it again"):
            memory.add("lost", user_id="ana")
        if change is not without_its_log:
            with pytest.raises(StoreReplacedError):
                memory.search("a fact", user_id="ana")
            with pytest.raises(StoreReplacedError):
                memory.forget(user_id="ana")


def test_a_file_that_goes_during_the_write_is_noticed_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "m.db") as memory:
        memory.add("a fact", user_id="ana")
        words = memory.store.words
        assert words is not None
        upsert = words.upsert

        def late(seqs: Sequence[int], read: Sequence[Any]) -> None:
            (tmp_path / "m.db").unlink()
            upsert(seqs, read)

        monkeypatch.setattr(words, "upsert", late)
        with pytest.raises(StoreReplacedError):
            memory.add("lost", user_id="ana")


def test_a_relative_path_stays_the_same_file_when_the_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(Path("m.db")) as memory:
        monkeypatch.chdir("/")
        memory.add("a fact", user_id="ana")
        memory.forget(user_id="ana")
        memory.backup(tmp_path / "copy.db")


def test_opening_a_store_twice_in_one_process_leaves_its_locks_alone(tmp_path: Path) -> None:
    """Closing any descriptor of a file releases the process's locks on it: then another process
    takes itself for the last one, removes the write-ahead log, and acknowledged adds are lost."""
    path = tmp_path / "m.db"
    with opened(path) as memory:
        memory.add("before", user_id="ana")
        opened(path).close()
        other = "from gcmem import Memory; from gcmem.testing import HashEncoder; import sys; "
        other += "Memory(sys.argv[1], encoder=HashEncoder()).close()"
        subprocess.run([sys.executable, "-c", other, str(path)], check=True)
        assert path.with_name("m.db-wal").exists()
        memory.add("after", user_id="ana")
        seen = "from gcmem import Memory; from gcmem.testing import HashEncoder; import sys; "
        seen += "print(len(Memory(sys.argv[1], encoder=HashEncoder()).get_all()))"
        done = subprocess.run(
            [sys.executable, "-c", seen, str(path)], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "2"


def test_a_server_whose_store_was_replaced_is_not_ready(tmp_path: Path) -> None:
    server = start(tmp_path, "--rate", "0")
    try:
        body = {"messages": ["I live in Porto."], "user_id": "ana"}
        assert server.post("/v1/memories", body)[0] == 201
        server.store.unlink()
        status, problem = server.post("/v1/memories", body)
        assert status == 503
        assert problem["type"].endswith("StoreReplacedError")
        connection = server.connect()
        connection.request("GET", "/readyz")
        assert connection.getresponse().status == 503
        connection.close()
    finally:
        server.process.terminate()
        server.process.wait(30)


READ_ONLY = """
import sys, time
from pathlib import Path
from gcmem import Memory
from gcmem.errors import GCMemError
from gcmem.testing import HashEncoder

def tell(what, call):
    started = time.monotonic()
    try:
        said = call()
    except GCMemError as error:
        said = f"{type(error).__name__}: {error}"
    print(what, "|", said, "|", round(time.monotonic() - started, 2))

folder = Path(sys.argv[1])
def search():
    with Memory(folder / "m.db", encoder=HashEncoder()) as memory:
        return [item.chunk.text for item in memory.search("fact", user_id="ana")]
def add():
    with Memory(folder / "m.db", encoder=HashEncoder()) as memory:
        memory.add("another", user_id="ana")
tell("search", search)
tell("add", add)
tell("new", lambda: Memory(folder / "new.db", encoder=HashEncoder()))
"""


def on_read_only(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command for which the folder is a read-only file system, also as root."""
    mount = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh", *command],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def told(folder: Path) -> dict[str, tuple[str, float]]:
    done = on_read_only(folder, sys.executable, "-c", READ_ONLY, str(folder))
    assert done.returncode == 0, done.stderr
    lines = [line.split(" | ") for line in done.stdout.splitlines()]
    return {what: (said, float(spent)) for what, said, spent in lines}


def check_read_only(found: dict[str, tuple[str, float]]) -> None:
    assert found["search"][0] == "['a fact']"
    assert found["add"][0].startswith("StoreUnavailableError")
    assert "read-only" in found["add"][0]
    assert found["new"][0].startswith("StoreUnavailableError")
    assert max(spent for _, spent in found.values()) < AT_ONCE_S


def test_on_a_read_only_file_system_reads_work_and_writes_fail_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    with opened(folder / "m.db") as memory:
        memory.add("a fact", user_id="ana")
    check_read_only(told(folder))


def test_a_read_only_mount_sees_what_another_process_has_just_written(tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    with opened(folder / "m.db") as memory:
        memory.add("a fact", user_id="ana")
        check_read_only(told(folder))


def test_a_log_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    """What is in the log alone must not be silently left out."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    script = (
        "import os, sys; from gcmem import Memory; from gcmem.testing import HashEncoder; "
        "Memory(sys.argv[1], encoder=HashEncoder()).add('a fact', user_id='ana'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(folder / "m.db")], check=True)
    (folder / "m.db-shm").unlink()
    found = told(folder)
    assert found["search"][0].startswith("StoreUnavailableError")
    assert "m.db-wal" in found["search"][0]
    assert found["search"][1] < AT_ONCE_S


def test_a_read_only_copy_that_changes_underneath_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "mounted" / "m.db"
    path.parent.mkdir()
    with opened(path) as memory:
        memory.add("a fact", user_id="ana")
    script = (
        "import sys; from gcmem import Memory; from gcmem.testing import HashEncoder; "
        "memory = Memory(sys.argv[1], encoder=HashEncoder()); "
        "print(len(memory.get_all()), flush=True); sys.stdin.readline(); memory.get_all()"
    )
    mount = f"mount --bind {path.parent} {path.parent} && mount -o remount,ro,bind {path.parent}"
    with subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh",
         sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        with opened(path) as memory:
            memory.add("another", user_id="ana")
        _, said = process.communicate("\n", timeout=60)
    assert "StoreReplacedError" in said


def test_the_command_tells_at_once_that_a_store_can_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    with Memory(folder / "m.db") as memory:
        memory.add("I live in Porto.", user_id="ana")
    started = time.monotonic()
    done = on_read_only(
        folder, sys.executable, "-m", "gcmem", "add", "x", "--path", str(folder / "m.db")
    )
    assert time.monotonic() - started < 2 * AT_ONCE_S
    assert done.returncode == 1
    assert "read-only" in done.stderr
    done = on_read_only(
        folder, sys.executable, "-m", "gcmem", "history", "--path", str(folder / "m.db")
    )
    assert "Porto" in done.stdout, done.stderr


def test_a_lock_of_another_process_is_still_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    script = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); time.sleep(1); c.rollback()"
    )
    with opened(path) as memory:
        with subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            memory.add("after the lock", user_id="ana")
        assert len(memory.get_all()) == 1


def test_a_path_that_can_not_be_a_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="folder"):
        opened(tmp_path)
