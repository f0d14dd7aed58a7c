"""An acknowledged chunk survives SIGKILL; two processes can write one file."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import gcmem
from gcmem import Memory
from gcmem.errors import StoreUnavailableError
from gcmem.protocols import Vectors
from gcmem.testing import HashEncoder
from gcmem.types import ChunkFilter

WRITER = """
import sys
from gcmem import Memory
from gcmem.testing import HashEncoder
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Memory(path, encoder=HashEncoder()) as memory:
    for n in range(count):
        (chunk,) = memory.add(f"{name} fact {n}", user_id="ana")
        print(chunk.id, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_every_acknowledged_chunk_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    rng = random.Random(7)
    acknowledged: list[str] = []
    for round_number in range(20):
        with writer(path, f"round {round_number}", 100_000) as process:
            assert process.stdout is not None
            acknowledged.append(process.stdout.readline().strip())
            time.sleep(rng.uniform(0, 0.1))
            process.send_signal(signal.SIGKILL)
            acknowledged += process.stdout.read().split()
        # A line that the kill cut in half was not read whole, so it was not acknowledged.
        acknowledged = [chunk_id for chunk_id in acknowledged if len(chunk_id) == 36]
        with Memory(path, encoder=HashEncoder()) as memory:
            stored = memory.store.log.get(acknowledged)
            assert set(acknowledged) == set(stored)
            everything = list(memory.store.log.scan(ChunkFilter()))
            query = memory.encoder.encode(["fact"])
            (hits,) = memory.store.index.search(query, k=10**6, where=ChunkFilter())
            assert {chunk_id for chunk_id, _ in hits} == {chunk.id for chunk in everything}
            assert memory.store.buffer.recent(ChunkFilter()) == tuple(everything[::-1][:10])
    assert len(acknowledged) >= 20


def test_two_processes_add_a_thousand_chunks_each(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=HashEncoder()) as reader:
        reader.search("fact")
        with writer(path, "left", 1000) as left, writer(path, "right", 1000) as right:
            outputs = [process.communicate(timeout=120)[0].split() for process in (left, right)]
        assert left.returncode == right.returncode == 0
        assert [len(ids) for ids in outputs] == [1000, 1000]
        assert len(reader.get_all()) == 2000
        (hits,) = reader.store.index.search(
            reader.encoder.encode(["fact"]), k=5000, where=ChunkFilter()
        )
        assert {chunk_id for chunk_id, _ in hits} == set(outputs[0]) | set(outputs[1])
        seqs = [chunk.seq for chunk in reader.get_all()]
        assert seqs == sorted(set(seqs), key=lambda seq: seq or 0)


def test_two_reindexes_at_once_never_mix_their_vectors(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add([f"fact {n}" for n in range(600)], user_id="ana")

    class Interrupted(HashEncoder):
        """Another process re-embeds the store while this encoder works."""

        def encode(self, texts: Sequence[str]) -> Vectors:
            gcmem.reindex(path, encoder=HashEncoder(name="second"))
            return super().encode(texts)

    with pytest.raises(StoreUnavailableError, match="another process"):
        gcmem.reindex(path, encoder=Interrupted(name="first"))
    with Memory(path, encoder=HashEncoder(name="second")) as memory:
        assert "fact 7" in found(memory)


def found(memory: Memory) -> set[str]:
    return {item.chunk.text for item in memory.search("fact 7", user_id="ana").candidates}


def test_a_reindex_that_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add([f"fact {n}" for n in range(600)], user_id="ana")

    class Stopping(HashEncoder):
        calls = 0

        def encode(self, texts: Sequence[str]) -> Vectors:
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return super().encode(texts)

    with Memory(path, encoder=HashEncoder()) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.store.index.rebuild(Stopping(name="other"))
        assert "fact 7" in found(memory)  # the old vectors still serve
        seen: list[int] = []
        other = HashEncoder(name="other")
        memory.store.index.rebuild(other, progress=lambda done, _: seen.append(done))
        assert seen[0] == 256
    with Memory(path, encoder=other) as memory:
        assert "fact 7" in found(memory)
