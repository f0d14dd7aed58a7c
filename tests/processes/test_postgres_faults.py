"""A real PostgreSQL server that is killed, stalls, or is kept waiting."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from gcmem.errors import InvalidInputError, StoreUnavailableError
from gcmem.protocols import ScoreKey, Store
from gcmem.store.postgres import PostgresSettings, open_postgres
from gcmem.testing import HashEncoder
from gcmem.testing.store_suite import EVERYTHING, chunk
from gcmem.types import Chunk
from tests.postgres_server import PostgresServer, temporary_server

ENCODER = HashEncoder()
QUICK = PostgresSettings(connect_timeout_s=1, statement_timeout_s=0.5)
ROUNDS = 3


def put(store: Store, *texts: str) -> tuple[Chunk, ...]:
    chunks = [chunk(text) for text in texts]
    return store.append(chunks, ENCODER.encode(texts), encoder_id=ENCODER.id)


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """A server that these tests may kill."""
    with temporary_server() as server:
        yield server


def test_no_acknowledged_chunk_is_lost_when_the_server_is_killed(mortal: PostgresServer) -> None:
    url = mortal.make_schema()
    settings = PostgresSettings(connect_timeout_s=3, statement_timeout_s=5)
    store = open_postgres(url, encoder=ENCODER, stm_size=5, settings=settings)
    acknowledged: list[Chunk] = []
    failures: list[StoreUnavailableError] = []
    done = threading.Event()

    def write(name: str) -> None:
        while not done.is_set():
            try:
                acknowledged.extend(put(store, f"{name} one", f"{name} two"))
            except StoreUnavailableError as error:  # any other error fails the test
                failures.append(error)

    def read() -> None:
        while not done.is_set():
            try:
                store.index.search(ENCODER.encode(["one"]), k=5, where=EVERYTHING)
            except StoreUnavailableError as error:
                failures.append(error)

    rng = random.Random(7)
    with ThreadPoolExecutor(3) as pool:
        work: list[Future[None]] = [
            pool.submit(write, "a"),
            pool.submit(write, "b"),
            pool.submit(read),
        ]
        try:
            for _ in range(ROUNDS):
                _wait_for_growth(acknowledged, by=20)
                time.sleep(rng.uniform(0, 0.05))
                mortal.kill()
                _wait_for_growth(failures, by=1)
                mortal.start()
            _wait_for_growth(acknowledged, by=20)  # the same client is back
        finally:
            done.set()
        for job in work:
            job.result()
    stored = list(store.log.scan(EVERYTHING))
    assert {c.id for c in acknowledged} <= {c.id for c in stored}
    assert store.log.get([c.id for c in acknowledged]) == {c.id: c for c in acknowledged}
    assert len(stored) % 2 == 0  # a batch that was cut off is there whole, or not at all
    assert len({c.seq for c in stored}) == len(stored)
    hits = store.index.search(ENCODER.encode(["one"]), k=10**6, where=EVERYTHING)[0]
    assert {chunk_id for chunk_id, _ in hits} == {c.id for c in stored}
    store.close()


def test_a_server_that_is_away_is_a_typed_error_until_it_is_back(mortal: PostgresServer) -> None:
    url = mortal.make_schema()
    store = open_postgres(url, encoder=ENCODER, stm_size=5, settings=QUICK)
    (kept,) = put(store, "a")
    mortal.kill()
    try:
        started = time.monotonic()
        with pytest.raises(StoreUnavailableError, match="check that the server runs"):
            store.log.count(EVERYTHING)
        with pytest.raises(StoreUnavailableError, match="check that the server runs"):
            put(store, "b")
        with pytest.raises(StoreUnavailableError, match="check that the server runs"):
            open_postgres(url, encoder=ENCODER, stm_size=5, settings=QUICK)
        assert store.scores is not None
        key = ScoreKey(scorer="model@1", question="q")
        store.scores.put(key, {("a", "b"): 0.5})  # a score can be computed again
        assert time.monotonic() - started < 10
    finally:
        mortal.start()
    assert list(store.log.scan(EVERYTHING)) == [kept]
    store.close()


def test_a_lock_that_somebody_holds_ends_in_a_timeout(postgres_url: str) -> None:
    store = open_postgres(postgres_url, encoder=ENCODER, stm_size=5, settings=QUICK)
    put(store, "a")
    with psycopg.connect(postgres_url) as somebody:
        somebody.execute("SELECT pg_sleep(0), last_seq FROM gcmem_sequence FOR UPDATE")
        started = time.monotonic()
        with pytest.raises(
            StoreUnavailableError, match=r"within 0\.5 s: it is busy, or another client"
        ):
            put(store, "b")
        assert time.monotonic() - started < 2
        assert store.log.count(EVERYTHING) == 1  # readers don't wait for writers
    put(store, "c")
    assert [c.text for c in store.log.scan(EVERYTHING)] == ["a", "c"]
    store.close()


def test_a_network_that_stalls_ends_in_a_timeout(postgres: PostgresServer) -> None:
    database = postgres.make_database()
    with StallingProxy(postgres.socket) as proxy:
        url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}"
        store = open_postgres(url, encoder=ENCODER, stm_size=5, settings=QUICK)
        (kept,) = put(store, "a")
        for call in (lambda: put(store, "b"), lambda: store.log.count(EVERYTHING)):
            proxy.flowing.clear()
            started = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                call()
            assert time.monotonic() - started < 6
            proxy.flowing.set()
        # What was under way when the network stalled may still arrive; the client is back.
        assert kept in _scan_again(store)
        # Stalled in the middle of a transaction, not before it.
        with pytest.raises(StoreUnavailableError, match="no answer within"):
            _stall_within(store, proxy)
        proxy.flowing.set()
        assert kept in _scan_again(store)
        store.close()


def test_errors_never_show_the_password(postgres: PostgresServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens here
        port = taken.getsockname()[1]
        url = f"postgresql://ana:s3cret%2Fword@127.0.0.1:{port}/memory"
        with pytest.raises(StoreUnavailableError) as refused:
            open_postgres(url, encoder=ENCODER, stm_size=5, settings=QUICK)
    assert f"postgresql://ana@127.0.0.1:{port}/memory" in str(refused.value)
    for broken in (
        "postgresql://ana:s3cret/word@127.0.0.1/memory",
        "postgresql://ana:12/s3cret@127.0.0.1/memory",
        "postgresql://ana:12#s3cret@127.0.0.1/memory",
        "postgresql://ana:12?s3cret@127.0.0.1/memory",
        "postgresql://ana:s3cret@host:port/memory",
        "postgresql://ana:s3cret@host/memory?statement_timeout=soon",
        "postgresql://ana:s3cret@host/memory?nonsense=1",
        "mysql://ana:s3cret@host/memory",
    ):
        with pytest.raises(InvalidInputError, match="postgresql://user:password@host") as invalid:
            open_postgres(broken, encoder=ENCODER, stm_size=5, settings=QUICK)
        assert "s3cret" not in str(invalid.value)
        assert invalid.value.__suppress_context__
    assert "s3cret" not in str(refused.value)
    folder = quote(str(postgres.socket.parent))
    url = f"postgresql://postgres:s3cret@/nowhere?host={folder}&connect_timeout=2"
    with pytest.raises(StoreUnavailableError, match='"nowhere" does not exist') as missing:
        open_postgres(url, encoder=ENCODER, stm_size=5)
    assert "s3cret" not in str(missing.value)


def _stall_within(store: Store, proxy: StallingProxy) -> None:
    with store.log._database.transaction() as connection:  # type: ignore[attr-defined]
        proxy.flowing.clear()
        connection.execute("SELECT 1")


def _wait_for_growth(events: Sequence[object], *, by: int) -> None:
    wanted = len(events) + by
    deadline = time.monotonic() + 30
    while len(events) < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _scan_again(store: Store) -> list[Chunk]:
    """Reads everything, also where the first calls meet the tail of a fault."""
    for _ in range(5):
        try:
            return list(store.log.scan(EVERYTHING))
        except StoreUnavailableError:
            continue
    raise AssertionError("the client did not come back")


class StallingProxy:
    """Forwards TCP to a unix socket; while `flowing` is cleared, it swallows nothing and waits."""

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port = self._listener.getsockname()[1]
        self.flowing = threading.Event()
        self.flowing.set()

    def __enter__(self) -> StallingProxy:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.flowing.set()
        for end in (self._listener, *self._sockets):
            with suppress(OSError):  # the other side may have been faster
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._sockets):
            end.close()

    def _run(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            self._sockets += [client, server]
            self._run(self._forward, client, server)
            self._run(self._forward, server, client)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self.flowing.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return
