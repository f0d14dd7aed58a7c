"""Several writers on one Qdrant store, and writers that fail: what readers may and may not see."""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gcmem.errors import EncoderMismatchError, InvalidInputError, StoreUnavailableError
from gcmem.store.qdrant import QdrantLog
from gcmem.store.qdrant.address import QdrantSettings, parse_url
from gcmem.store.qdrant.index import QdrantIndex
from gcmem.store.qdrant.ledger import LEASE_S, Ledger
from gcmem.store.qdrant.server import QdrantServer
from gcmem.testing import HashEncoder
from gcmem.testing.store_suite import EVERYTHING, chunk
from gcmem.types import Chunk, ChunkFilter
from tests.qdrant_http import StandIn

ENCODER = HashEncoder()
Writer = Callable[..., QdrantLog]


@pytest.fixture(
    params=["local", "http", *(["server"] if "GCMEM_TEST_QDRANT_URL" in os.environ else [])]
)
def writer(request: pytest.FixtureRequest) -> Iterator[Writer]:
    """Makes writers on one store; over HTTP each has connections of its own, as machines have."""
    stand_in = StandIn()
    with stand_in.listening() as address:
        url = {
            "local": "qdrant://:memory:",
            "http": f"qdrant://{address}/m",
            "server": f"{os.environ.get('GCMEM_TEST_QDRANT_URL')}/test-{uuid.uuid4().hex}",
        }[request.param]
        servers: list[QdrantServer] = []

        def make(**ledger: Any) -> QdrantLog:
            if request.param != "local" or not servers:
                servers.append(QdrantServer(parse_url(url)[0], QdrantSettings()))
            return QdrantLog(servers[-1], ledger=Ledger(servers[-1], **ledger))

        yield make
        make().drop()
        for server in servers:
            server.close()
    stand_in.data.close()


def put(log: QdrantLog, *chunks: Chunk) -> tuple[Chunk, ...]:
    vectors = ENCODER.encode([c.text for c in chunks])
    return log.append(chunks, vectors, encoder_id=ENCODER.id)


def found(log: QdrantLog) -> int:
    index = QdrantIndex(log, encoder_id=ENCODER.id)
    return len(index.search(ENCODER.encode(["tea"]), k=1000, where=EVERYTHING)[0])


class Failing:
    """A client that fails from a certain request on, until it is repaired."""

    def __init__(self, client: Any, *, fails: Callable[[str, dict[str, Any]], bool]) -> None:
        self._client = client
        self._fails = fails
        self.is_down = False
        self.stays_down = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(**arguments: Any) -> Any:
            failed = self.is_down or self._fails(name, arguments)
            self.is_down = failed and self.stays_down
            if failed:
                raise OSError("the cable is out")
            return method(**arguments)

        return call if callable(method) else method


def failing_at_page(log: QdrantLog, page: int, *, stays_down: bool) -> Failing:
    """The client fails at the given page of chunks."""
    pages = iter(range(1, 1000))

    def fails(name: str, arguments: dict[str, Any]) -> bool:
        is_chunks = name == "upsert" and not arguments["collection_name"].endswith("-state")
        return is_chunks and next(pages) == page

    client = Failing(log.server._client, fails=fails)
    client.stays_down = stays_down
    log.server._client = client
    return client


def test_writers_at_once_get_unique_rising_numbers_and_readers_whole_batches(
    writer: Writer,
) -> None:
    logs = [writer() for _ in range(4)]
    stop = threading.Event()

    def write(number: int) -> list[int]:
        seqs: list[int] = []
        for turn in range(8):
            name = f"{number}-{turn}"
            batch = [chunk("tea", metadata={"b": name}) for _ in range(turn % 3 + 1)]
            stored = put(logs[number], *batch)
            numbers = [c.seq or 0 for c in stored]
            assert numbers == list(range(numbers[0], numbers[0] + len(batch)))
            seqs += numbers
        return seqs

    def watch() -> None:
        log = writer()
        while not stop.is_set():
            seen: dict[str, int] = {}
            for each in log.scan(EVERYTHING):
                seen[each.metadata["b"]] = seen.get(each.metadata["b"], 0) + 1
            assert all(n == int(b.partition("-")[2]) % 3 + 1 for b, n in seen.items())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(5) as pool:
            watching = pool.submit(watch)
            written = list(pool.map(write, range(4)))
            stop.set()
            watching.result()
    finally:
        stop.set()
        sys.setswitchinterval(before)
    assert all(seqs == sorted(seqs) for seqs in written)
    numbers = sorted(seq for seqs in written for seq in seqs)
    assert len(set(numbers)) == len(numbers) == 4 * 15
    assert [c.seq for c in logs[0].scan(EVERYTHING)] == numbers


@pytest.mark.parametrize("stays_down", [False, True])
def test_a_batch_that_fails_half_way_is_not_there_and_can_be_written_again(
    writer: Writer, stays_down: bool
) -> None:
    log, reader = writer(), writer()
    put(log, chunk("tea"))
    batch = [chunk(f"tea {n}") for n in range(600)]
    client = failing_at_page(log, 2, stays_down=stays_down)
    with pytest.raises(StoreUnavailableError):
        put(log, *batch)
    client.is_down = client.stays_down = False
    for each in (log, reader):
        assert each.count(EVERYTHING) == 1
        assert len(list(each.scan(EVERYTHING))) == len(list(each.scan(EVERYTHING, by_time=True)))
        assert each.get([c.id for c in batch]) == {}
        assert found(each) == 1
    stored = put(log, *batch)
    assert list(reader.scan(EVERYTHING, after_seq=1)) == list(stored)
    assert reader.count(EVERYTHING) == 601


def test_a_batch_that_begins_after_a_reader_has_looked_is_not_seen_half(writer: Writer) -> None:
    log, reader = writer(), writer()
    put(log, chunk("tea"))
    client = failing_at_page(log, 2, stays_down=True)
    begun: list[bool] = []

    def meanwhile(name: str, _: dict[str, Any]) -> bool:
        if name == "count" and not begun:
            begun.append(True)
            with pytest.raises(StoreUnavailableError):
                put(log, *(chunk(f"tea {n}") for n in range(600)))
            client.is_down = client.stays_down = False
        return False

    reader.server._client = Failing(reader.server._client, fails=meanwhile)
    assert reader.count(EVERYTHING) == 1
    assert begun


def test_what_a_killed_writer_left_is_given_up_in_time(writer: Writer) -> None:
    log = writer()
    put(log, chunk("tea"))
    batch = [chunk(f"tea {n}") for n in range(300)]
    client = failing_at_page(log, 2, stays_down=True)
    with pytest.raises(StoreUnavailableError):
        put(log, *batch)
    client.is_down = client.stays_down = False

    soon = writer()
    put(soon, chunk("tea"))
    with pytest.raises(InvalidInputError):
        put(soon, *batch)  # for all that this writer knows, the other one is still at work
    later = writer(clock=lambda: time.time() + LEASE_S + 1)
    assert len(put(later, *batch)) == 300
    assert writer().count(EVERYTHING) == 302
    assert len({c.seq for c in later.scan(EVERYTHING)}) == 302


def test_a_writer_that_was_given_up_is_told_so_and_shows_nothing(writer: Writer) -> None:
    log = writer()
    put(log, chunk("tea"))
    later = writer(clock=lambda: time.time() + LEASE_S + 1)

    def meanwhile(name: str, arguments: dict[str, Any]) -> bool:
        is_chunks = name == "upsert" and not arguments["collection_name"].endswith("-state")
        if is_chunks and not overtaken:
            overtaken.append(True)
            put(later, chunk("tea"))
        return False

    overtaken: list[bool] = []
    log.server._client = Failing(log.server._client, fails=meanwhile)
    with pytest.raises(StoreUnavailableError, match="was given up"):
        put(log, chunk("tea"), chunk("tea"))
    assert writer().count(EVERYTHING) == found(later) == 2


def test_two_writers_of_one_id_leave_one_chunk(writer: Writer) -> None:
    logs = [writer() for _ in range(3)]
    put(logs[0], chunk("tea"))
    same = chunk("tea")

    def write(log: QdrantLog) -> bool:
        try:
            put(log, same, chunk("tea"))
        except InvalidInputError:
            return False
        return True

    with ThreadPoolExecutor(3) as pool:
        won = list(pool.map(write, logs))
    assert sum(won) <= 1
    assert logs[0].count(EVERYTHING) == 1 + 2 * sum(won)


def test_nothing_acknowledged_is_lost_by_a_reindex_among_writes(writer: Writer) -> None:
    log, reindexing = writer(), writer()
    first = put(log, *(chunk(f"tea {n}", metadata={"v": 0}) for n in range(300)))
    other = HashEncoder(name="other")
    expected = {c.id: 0 for c in first}
    started = threading.Event()

    def write() -> None:
        started.wait()
        for n in range(200):
            try:
                (stored,) = put(log, chunk(f"late {n}", metadata={"v": 1}))
            except EncoderMismatchError:
                return
            expected[stored.id] = 1
            if n < 20:
                assert log.delete([first[n].id]) == 1
                del expected[first[n].id]
                log.set_metadata(first[-1 - n].id, {"v": 1})
                expected[first[-1 - n].id] = 1

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        reindexing.reindex(other, progress=lambda *_: started.set())
        writing.result()
    assert {c.id: c.metadata["v"] for c in reindexing.scan(EVERYTHING)} == expected
    assert reindexing.count(ChunkFilter(metadata=(("v", 0),))) < 300
    assert reindexing.encoder_id == log.encoder_id == other.id
    index = QdrantIndex(reindexing, encoder_id=other.id)
    assert len(index.search(other.encode(["tea"]), k=1000, where=EVERYTHING)[0]) == len(expected)


def test_a_reindex_does_not_overtake_a_write_under_way(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick, reindexing = writer(), writer(), writer()
    put(quick, *(chunk(f"tea {n}") for n in range(300)))
    started, finish = threading.Event(), threading.Event()
    insert = slow._insert

    def wait(*arguments: Any, **options: Any) -> None:
        started.set()
        finish.wait(10)
        insert(*arguments, **options)

    monkeypatch.setattr(slow, "_insert", wait)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(put, slow, chunk("slow"))
        started.wait(10)
        put(quick, chunk("quick"))
        threading.Timer(0.5, finish.set).start()
        assert reindexing.reindex(HashEncoder(name="other")) == 302
        writing.result()
    texts = [c.text for c in reindexing.scan(EVERYTHING, after_seq=300)]
    assert texts == ["slow", "quick"]


def test_a_reindex_that_was_stopped_goes_on(writer: Writer) -> None:
    log = writer()
    put(log, *(chunk(f"tea {n}") for n in range(600)))
    other = HashEncoder(name="other")

    def stop(done: int, _: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log.reindex(other, progress=stop)
    assert log.encoder_id == ENCODER.id
    assert found(log) == 600
    log.delete([next(log.scan(EVERYTHING)).id])
    seen: list[int] = []
    assert writer().reindex(other, progress=lambda done, _: seen.append(done)) == 599
    assert len(seen) == 3
    assert log.count(EVERYTHING) == 599
