"""What is forgotten is gone from the files, or it is said what remains and when it goes."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from gcmem import Memory
from gcmem.errors import ErasurePendingWarning
from gcmem.protocols import ScoreKey, Vectors
from gcmem.store import NumpyIndex
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import CandidateSet, Conflict
from gcmem.words import terms_of
from tests.conftest import newer_ends, same_slot
from tests.serve.conftest import start
from tests.unit.cli.test_commands import gcmem

READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
print(connection.execute("SELECT count(*) FROM chunks").fetchone()[0], flush=True)
sys.stdin.read()
"""
SECRET = re.compile(rb"secret number [0-9.]+")


def opened(path: Path) -> Memory:
    oracle = RuleOracle(same_slot)
    return Memory(path, encoder=HashEncoder(), oracle=oracle, require_qualified=False)


@contextmanager
def reader(path: Path) -> Iterator[Callable[[], None]]:
    """Another process that holds a read transaction open until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assert int(process.stdout.readline()) >= 0

        def end() -> None:
            assert process.stdin is not None
            if not process.stdin.closed:
                process.stdin.close()
            process.wait(30)

        yield end
        end()


def copies(path: Path) -> int:
    """Counts the secrets in the store's files.

    By another process: if this one closed the file, it would release the locks of its store.
    """
    script = (
        "import pathlib, re, sys; "
        "print(sum(len(re.findall(sys.argv[2].encode(), p.read_bytes())) "
        "for p in pathlib.Path(sys.argv[1]).parent.glob(pathlib.Path(sys.argv[1]).name + '*')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), SECRET.pattern.decode()],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout)


def eventually(condition: Callable[[], bool], *, within_s: float = 30) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def test_a_forget_without_a_reader_leaves_no_copy_and_nothing_pending(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory, warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.add("keep this", user_id="bo")
        for n in range(50):
            memory.add(f"secret number {n}", user_id="ana")
        assert copies(path) >= 50
        assert memory.forget(user_id="ana") == 50
        assert copies(path) == 0
        assert memory.erasing() is None


def test_an_open_reader_neither_delays_a_forget_nor_blocks_other_threads(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        for n in range(50):
            memory.add(f"secret number {n}", user_id="ana")
        with reader(path) as end_reader:
            waits: list[float] = []
            done = threading.Event()

            def use() -> None:
                while not done.is_set():
                    started = time.monotonic()
                    memory.add("something else", user_id="bo")
                    memory.search("else", user_id="bo")
                    waits.append(time.monotonic() - started)

            thread = threading.Thread(target=use)
            thread.start()
            started = time.monotonic()
            try:
                with pytest.warns(ErasurePendingWarning, match="reads"):
                    assert memory.forget(user_id="ana") == 50
            finally:
                spent = time.monotonic() - started
                done.set()
                thread.join()
            assert spent < 10
            assert max(waits) < 10
            assert memory.get_all(user_id="ana") == ()
            assert "m.db-wal" in (memory.erasing() or "")
            assert copies(path) > 0
            end_reader()
        # Nobody calls anything: it goes by itself.
        assert eventually(lambda: copies(path) == 0)
        assert eventually(lambda: memory.erasing() is None)


def test_what_a_closed_store_left_is_erased_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with reader_kept(path) as end_reader:
        with opened(path) as memory:
            memory.add("secret number 1", user_id="ana")
        with opened(path) as memory, pytest.warns(ErasurePendingWarning):
            memory.forget(user_id="ana")
        with opened(path) as memory:
            assert memory.erasing() is not None
        end_reader()
        # The reader was no gcmem and its end left the log as it was.
        with opened(path) as memory:
            assert eventually(lambda: memory.erasing() is None)
            assert copies(path) == 0


@contextmanager
def reader_kept(path: Path) -> Iterator[Callable[[], None]]:
    """A reader, and a second one whose connection keeps the log from being removed at the end."""
    opened(path).close()
    keeper = sqlite3.connect(path)
    keeper.execute("SELECT count(*) FROM chunks").fetchone()
    try:
        with opened(path) as memory:
            memory.add("something", user_id="bo")
        with reader(path) as end_reader:
            yield end_reader
    finally:
        keeper.close()


def test_bytes_in_unused_space_go_too(tmp_path: Path) -> None:
    """SQLite moves rows between pages and leaves bytes behind, about once in some thousand rows:
    here they are put there by hand."""
    path = tmp_path / "m.db"
    with opened(path) as memory:
        (chunk,) = memory.add("secret number 1", user_id="ana")
        memory.add([f"fact {n}" for n in range(200)], user_id="ana")
    content = path.read_bytes()
    unused = max(re.finditer(rb"\0+", content), key=lambda run: len(run.group()))
    middle = (unused.start() + unused.end()) // 2
    secret = b"secret number 1"
    path.write_bytes(content[:middle] + secret + content[middle + len(secret) :])
    with opened(path) as memory:
        assert memory.store.log.check() is None  # type: ignore[attr-defined]
        assert copies(path) == 2
        memory.forget(ids=[chunk.id])
    assert copies(path) == 0
    with opened(path) as memory:
        assert memory.store.log.check() is None  # type: ignore[attr-defined]
        assert len(memory.search("fact 7", k=5)) == 5


def test_an_open_store_takes_them_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcmem.store.sqlite.erasing.QUIET_S", 0.5)
    path = tmp_path / "m.db"
    with opened(path) as memory:
        ids = [chunk.id for chunk in memory.add([f"fact {n}" for n in range(300)], user_id="ana")]
        memory.forget(ids=ids[:200])
        freed = "PRAGMA freelist_count"
        assert rows(path, freed) != [(0,)]
        assert eventually(lambda: rows(path, freed) == [(0,)])
        assert len(memory.get_all()) == 100


def test_an_interrupted_reindex_keeps_no_vector_of_what_was_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "m.db"

    class Stopping(HashEncoder):
        calls = 0

        def encode(self, texts: Sequence[str]) -> Vectors:
            self.calls += 1
            if self.calls == 3:
                raise KeyboardInterrupt
            return super().encode(texts)

    with opened(path) as memory:
        memory.add([f"secret number {n}" for n in range(600)], user_id="ana")
        memory.add([f"fact {n}" for n in range(5)], user_id="bo")
        with pytest.raises(KeyboardInterrupt):
            memory.store.index.rebuild(Stopping(name="other"))
        memory.forget(user_id="ana")
    assert rows(path, "SELECT count(*) FROM vectors_next") == [(0,)]


def test_a_reindex_does_not_embed_what_is_forgotten_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        added = memory.add([f"secret number {n}" for n in range(20)], user_id="ana")

        class Forgetting(HashEncoder):
            calls = 0

            def encode(self, texts: Sequence[str]) -> Vectors:
                self.calls += 1
                if self.calls == 2:
                    raise KeyboardInterrupt
                memory.forget(ids=[added[0].id])
                memory.add("one more", user_id="ana")
                return super().encode(texts)

        with pytest.raises(KeyboardInterrupt):
            memory.store.index.rebuild(Forgetting(name="other"))
    gone = added[0].seq
    assert rows(path, f"SELECT count(*) FROM vectors_next WHERE seq = {gone}") == [(0,)]
    assert rows(path, "SELECT count(*) FROM vectors_next") == [(19,)]


def rows(path: Path, query: str) -> list[tuple[int, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


class ForgettingOracle(RuleOracle):
    """Judges, and before it has answered, the newer chunk is forgotten."""

    memory: Memory

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        found = super().judge(candidates)
        assert found
        self.memory.forget(ids=[found[0].newer])
        assert self.memory.store.scores is not None
        key = ScoreKey(scorer=self.id, question="?")
        self.memory.store.scores.put(key, {(c.older, c.newer): 0.9 for c in found})
        return found


@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_search_that_races_a_forget_leaves_no_edge_and_no_verdict(
    tmp_path: Path, place: str
) -> None:
    oracle = ForgettingOracle(same_slot)
    where = tmp_path / "m.db" if place == "file" else ":memory:"
    with Memory(where, encoder=HashEncoder(), oracle=oracle, require_qualified=False) as memory:
        oracle.memory = memory
        memory.add("city=Porto", user_id="ana")
        memory.add("city=Lyon", user_id="ana")
        result = memory.search("city", user_id="ana")
        (shadow,) = result.shadows
        old, new = shadow.candidate.chunk.id, shadow.witness.chunk.id
        assert newer_ends(memory.store, oracle.id, [old]) == {}
        assert memory.store.scores is not None
        key = ScoreKey(scorer=oracle.id, question="?")
        assert memory.store.scores.get(key, [(old, new)]) == {}


def test_the_index_in_memory_lets_go_of_a_vector_at_once(tmp_path: Path) -> None:
    with opened(tmp_path / "m.db") as memory:
        (secret,) = memory.add("secret number 1", user_id="ana")
        memory.add("another fact", user_id="ana")
        memory.search("secret", user_id="ana")
        index = memory.store.index
        assert isinstance(index, NumpyIndex)
        vector = memory.encoder.encode([f"user: {secret.text}"])[0]
        words = terms_of("secret number")["term"]
        held = index.rows.view()
        assert (held.parts["vectors"] == vector).all(axis=1).any()
        memory.forget(ids=[secret.id])
        held = index.rows.view()
        assert not (held.parts["vectors"] == vector).all(axis=1).any()
        assert not np.isin(held.parts["words"].sorted.terms, words).any()
        assert secret.id not in held.ids


def test_a_verdict_comes_back_with_a_chunk_that_was_forgotten_and_added_again(
    memory: Memory,
) -> None:
    chunks = memory.add(["city=Porto", "city=Lyon"], user_id="ana")
    memory.judge()
    old, new = chunks[0].id, chunks[1].id
    memory.forget(ids=[new])
    assert newer_ends(memory.store, memory.judging.id, [old]) == {}
    encoder = memory.encoder
    memory.store.append([chunks[1]], encoder.encode([chunks[1].text]), encoder_id=encoder.id)
    memory.judge()
    assert newer_ends(memory.store, memory.judging.id, [old]) == {old: [new]}


def test_the_command_says_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    gcmem("add", "secret number 1", "--user", "ana", path=path)
    with reader(path):
        gcmem("add", "a fact", "--user", "bo", path=path)
        done = subprocess.run(
            [sys.executable, "-m", "gcmem", "forget", "--user", "ana", "--yes", "--path",
             str(path), "--json"], capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    assert '"erasing": "' in done.stdout
    assert "m.db-wal" in done.stderr


def test_a_server_answers_202_while_bytes_are_left(tmp_path: Path) -> None:
    server = start(tmp_path, "--rate", "0")
    try:
        body = {"messages": ["secret number 1", "secret number 2"], "user_id": "ana"}
        status, reply = server.post("/v1/memories", body)
        assert status == 201
        one = reply["memories"][0]["id"]
        with reader(server.store):
            for path in (f"/v1/memories/{one}", "/v1/memories?user_id=ana"):
                connection = server.connect()
                connection.request("DELETE", path)
                response = connection.getresponse()
                assert response.status == 202
                said = json.loads(response.read())
                connection.close()
                assert said["forgotten"] == 1
                assert "served.db-wal" in said["erasing"]
        assert eventually(lambda: copies(server.store) == 0)
    finally:
        server.process.terminate()
        server.process.wait(30)
