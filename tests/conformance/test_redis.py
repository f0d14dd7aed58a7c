"""The recency buffer in Redis: the laws of a store, and the same answers as the log's own."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.crc import key_slot

from gcmem.protocols import Encoder, Store
from gcmem.store import LogBuffer, open_embedded
from gcmem.store.redis.buffer import RedisBuffer
from gcmem.store.redis.client import RedisSettings
from gcmem.testing import HashEncoder
from gcmem.testing.store_suite import START, StoreSuite, chunk
from gcmem.types import Chunk, ChunkFilter, Scope
from tests.redis_server import RedisServer

ENCODER = HashEncoder()
ANA = ChunkFilter(scope=Scope(user_id="ana"))
LONG = RedisSettings(trust_s=3600)
"""Nothing in these tests may pass only because the trust ran out."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("cluster"), mode="cluster") as server:
        yield server


@pytest.fixture(scope="module")
def sentinel(
    tmp_path_factory: pytest.TempPathFactory, server: RedisServer
) -> Iterator[RedisServer]:
    folder = tmp_path_factory.mktemp("sentinel")
    (folder / "sentinel.conf").write_text(f"sentinel monitor stm 127.0.0.1 {server.port} 1\n")
    with RedisServer(folder, mode="sentinel") as watcher:
        yield watcher


def with_redis(
    path: Path | str, url: str, *, capacity: int = 5, encoder: Encoder = ENCODER
) -> Store:
    store = open_embedded(path, encoder=encoder, stm_size=capacity)
    buffer = RedisBuffer(url, log=store.log, capacity=capacity, settings=LONG)
    return replace(store, buffer=buffer)


def put(store: Store, *chunks: Chunk, tell: bool = True) -> tuple[Chunk, ...]:
    vectors = ENCODER.encode([c.text for c in chunks])
    if not tell:
        store = replace(store, buffer=LogBuffer(store.log, capacity=5))
    return store.append(chunks, vectors, encoder_id=ENCODER.id)


def texts(store: Store, where: ChunkFilter = ANA) -> list[str]:
    return [c.text for c in store.buffer.recent(where)]


class TestRedis(StoreSuite):
    url: str

    @pytest.fixture(autouse=True)
    def _address(self, server: RedisServer) -> None:
        self.url = server.url

    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        return with_redis(tmp_path / "m.db", self.url, encoder=encoder)


class TestRedisCluster(TestRedis):
    @pytest.fixture(autouse=True)
    def _address(self, cluster: RedisServer) -> None:
        self.url = cluster.url


class TestRedisSentinel(TestRedis):
    @pytest.fixture(autouse=True)
    def _address(self, sentinel: RedisServer) -> None:
        self.url = f"redis+sentinel://127.0.0.1:{sentinel.port}/stm"


@pytest.fixture(params=["server", "cluster"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    store = with_redis(":memory:", request.getfixturevalue(request.param).url)
    yield store
    store.close()


scopes = st.builds(
    Scope,
    user_id=st.sampled_from([None, "ana", "bob"]),
    agent_id=st.sampled_from([None, "a"]),
    run_id=st.sampled_from([None, "r"]),
)
ODD = (1, 3, 5)
days = st.integers(0, 6)
pushes = st.tuples(st.just("push"), scopes, st.lists(days, min_size=1, max_size=8))
unheard = st.tuples(st.just("erase"), st.integers(0, 50), st.none())
reads = st.tuples(
    st.just("read"),
    st.builds(
        ChunkFilter,
        scope=scopes,
        after=st.none() | days.map(lambda n: START + timedelta(days=n)),
        as_of=st.none() | days.map(lambda n: START + timedelta(days=n)),
        known_at=st.none() | st.just(START),
        metadata=st.sampled_from([(), (("odd", True),)]),
    )
    | scopes.map(lambda scope: ChunkFilter(scope=scope)),
    st.none(),
)


@settings(max_examples=60)
@given(steps=st.lists(pushes | unheard | reads, min_size=1, max_size=40))
def test_every_read_is_what_the_log_would_answer(
    server: RedisServer, steps: list[tuple[str, Any, Any]]
) -> None:
    store = with_redis(":memory:", server.url, capacity=3)
    truth = LogBuffer(store.log, capacity=3)
    ids: list[str] = []
    with contextlib.closing(store):
        for kind, subject, on_days in steps:
            if kind == "push":
                batch = [
                    chunk(
                        f"{n}", day=n, recorded_day=n % 2, scope=subject, metadata={"odd": n in ODD}
                    )
                    for n in on_days
                ]
                ids += [c.id for c in put(store, *batch)]
            elif kind == "erase" and ids:
                store.delete([ids[subject % len(ids)]])
            elif kind == "read":
                assert store.buffer.recent(subject) == truth.recent(subject)
        for user in ("ana", "bob"):
            where = ChunkFilter(scope=Scope(user_id=user))
            assert store.buffer.recent(where) == truth.recent(where)
            assert store.buffer.recent(where) == truth.recent(where)


def test_a_scope_that_was_read_is_then_read_from_redis(store: Store) -> None:
    put(store, chunk("one", user="ana"))
    assert texts(store) == ["one"]
    # Untold, so that only a reader of the log could know: it shows who has answered.
    put(store, chunk("untold", day=1, user="ana"), tell=False)
    assert texts(store) == ["one"]
    put(store, chunk("two", day=2, scope=Scope(user_id="ana", run_id="r")))
    assert texts(store) == ["two", "one"]
    store.buffer.rebuild()
    assert texts(store) == ["two", "untold", "one"]


def test_what_was_not_told_is_seen_when_the_trust_ends(server: RedisServer) -> None:
    store = with_redis(":memory:", f"{server.url}?trust_s=0.05")
    with contextlib.closing(store):
        put(store, chunk("one", user="ana"))
        assert texts(store) == ["one"]
        put(store, chunk("untold", day=1, user="ana"), tell=False)
        wait_for(lambda: texts(store) == ["untold", "one"])


def wait_for(holds: Callable[[], bool], *, within_s: float = 5.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_erased_chunk_is_never_returned_and_the_next_moves_up(store: Store) -> None:
    stored = put(store, *(chunk(f"n{n}", day=n, user="ana") for n in range(8)))
    assert texts(store) == ["n7", "n6", "n5", "n4", "n3"]
    store.delete([stored[6].id])
    assert texts(store) == ["n7", "n5", "n4", "n3", "n2"]
    store.delete([c.id for c in stored])
    assert texts(store) == []


def test_times_that_a_double_cannot_tell_apart_stay_in_order(store: Store) -> None:
    far = datetime.fromisoformat("9999-12-30T00:00:00+00:00")
    put(store, chunk("first", user="ana"))
    assert texts(store) == ["first"]
    times = {f"+{n}": far + timedelta(microseconds=n) for n in (2, 0, 1)}
    late = [replace(chunk(text, user="ana"), at=at) for text, at in times.items()]
    put(store, *late)
    assert texts(store) == ["+2", "+1", "+0", "first"]


def test_two_processes_see_each_others_chunks_and_capacities_may_differ(
    server: RedisServer, tmp_path: Path
) -> None:
    path = tmp_path / "m.db"
    left, right = with_redis(path, server.url, capacity=3), with_redis(path, server.url, capacity=9)
    with contextlib.closing(left), contextlib.closing(right):
        put(left, *(chunk(f"n{n}", day=n, user="ana") for n in range(8)))
        assert len(texts(right)) == 8
        put(left, chunk("n8", day=8, user="ana"))
        assert texts(left) == ["n8", "n7", "n6"]
        assert texts(right) == [f"n{n}" for n in range(8, -1, -1)]


def test_writers_and_readers_at_once_leave_the_sets_as_the_log_is(
    server: RedisServer, tmp_path: Path
) -> None:
    stores = [with_redis(tmp_path / "m.db", server.url) for _ in range(4)]

    def work(writer: int) -> None:
        mine = ChunkFilter(scope=Scope(user_id="ana", run_id=str(writer)))
        for n in range(40):
            put(stores[writer], chunk(f"{writer}.{n}", day=n, scope=mine.scope))
            assert texts(stores[writer], mine)[0] == f"{writer}.{n}"
            stores[writer].buffer.recent(ANA)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for store in stores:
        newest = store.log.scan(ANA, by_time=True, newest_first=True, limit=5)
        assert store.buffer.recent(ANA) == tuple(newest)
        store.close()


def test_logs_that_share_a_redis_do_not_mix(server: RedisServer, tmp_path: Path) -> None:
    left, right = (with_redis(tmp_path / name, server.url) for name in ("l.db", "r.db"))
    with contextlib.closing(left), contextlib.closing(right):
        put(left, chunk("left", user="ana"))
        put(right, chunk("right", user="ana"))
        assert (texts(left), texts(right)) == (["left"], ["right"])


@pytest.mark.parametrize("kind", ["server", "cluster"])
def test_a_fill_that_a_push_overtakes_is_not_kept(
    kind: str, request: pytest.FixtureRequest
) -> None:
    url = f"{request.getfixturevalue(kind).url}?namespace={uuid.uuid4()}"
    store = with_redis(":memory:", url)
    slow = RedisBuffer(url, log=OvertakenLog(store), capacity=5, settings=LONG)  # type: ignore[arg-type]
    with contextlib.closing(store), contextlib.closing(slow):
        put(store, chunk("one", user="ana"))
        assert [c.text for c in slow.recent(ANA)] == ["one"]  # as the log was when it was asked
        assert texts(store) == ["two", "one"]


class OvertakenLog:
    """While a reader is still looking at the log's answer, a writer adds a chunk."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.location = store.log.location

    def scan(self, where: ChunkFilter, **options: Any) -> Iterator[Chunk]:
        found = list(self._store.log.scan(where, **options))
        put(self._store, chunk("two", day=2, user="ana"))
        return iter(found)


def test_redis_holds_no_text_and_no_scope(server: RedisServer) -> None:
    secret, name = f"secret-{uuid.uuid4()}", f"name-{uuid.uuid4()}"
    store = with_redis(":memory:", server.url)
    with contextlib.closing(store), server.client() as client:
        put(store, chunk(secret, user=name))
        assert texts(store, ChunkFilter(scope=Scope(user_id=name))) == [secret]
        kept = b"".join(client.dump(key) or b"" for key in client.keys("gcmem:*"))
        assert secret.encode() not in kept
        assert name.encode() not in kept + b"".join(client.keys("*"))


def test_the_keys_of_one_scope_share_a_slot_and_end_by_themselves(server: RedisServer) -> None:
    store = with_redis(":memory:", server.url)
    with contextlib.closing(store), server.client() as client:
        client.flushall()
        put(store, chunk("one", scope=Scope(user_id="ana", agent_id="a", run_id="r")))
        keys = client.keys("gcmem:*")
        assert len(keys) == 7  # every scope that covers it, but for the widest
        for key in keys:
            assert key_slot(key) == key_slot(key + b":filling")
            assert 0 < client.pttl(key) <= 3_600_000
