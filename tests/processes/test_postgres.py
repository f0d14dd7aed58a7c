"""What PostgreSQL adds to the laws of every store: its order, its index, its migrations."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import psycopg
import pytest

from gcmem import Memory
from gcmem.errors import MissingExtraError, StoreVersionError
from gcmem.protocols import ScoreKey, Store, Vectors
from gcmem.store.postgres import PostgresDatabase, PostgresSettings, open_postgres
from gcmem.store.postgres import connection as connection_module
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.testing.ledger_suite import JUDGE, verdict
from gcmem.testing.store_suite import EVERYTHING, chunk
from gcmem.types import Chunk, ChunkFilter, Scope
from tests.conftest import day, newer_ends, same_slot
from tests.postgres_server import PostgresServer

ENCODER = HashEncoder(dimensions=64)
SMALL = PostgresSettings(exact_below=1000)
CHUNKS = 4000


def test_memory_works_on_postgres(postgres_url: str) -> None:
    store = open_postgres(postgres_url, encoder=ENCODER, stm_size=10)
    oracle = RuleOracle(same_slot)
    with Memory(store=store, encoder=ENCODER, oracle=oracle, require_qualified=False) as memory:
        old, new = (
            memory.add(f"diet={diet}", user_id="ana", at=day(n))[0]
            for n, diet in enumerate(("vegan", "omnivore"))
        )
        result = memory.search("diet", user_id="ana")
        assert [item.chunk for item in result.kept] == [new]
        assert result.shadows[0].candidate.chunk == old
        assert memory.judge().judged == 2
        assert memory.update(new.id, metadata={"tag": "x"}).metadata == {"tag": "x"}
        assert memory.forget(user_id="ana") == 2


def test_numbers_become_visible_in_their_order(postgres_url: str) -> None:
    store = open_postgres(postgres_url, encoder=ENCODER, stm_size=5)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(postgres_url) as slow:
        # A writer that has its number but has not committed yet...
        first = slow.execute(
            "UPDATE gcmem_sequence SET last_seq = last_seq + 1 RETURNING last_seq"
        ).fetchone()
        fast = pool.submit(store.append, [chunk("b")], ENCODER.encode(["b"]), encoder_id=ENCODER.id)
        with pytest.raises(TimeoutError):
            fast.result(timeout=0.3)
        # ...keeps later numbers from being seen before it.
        assert list(store.log.scan(EVERYTHING)) == []
        slow.commit()
        (second,) = fast.result()
    assert first is not None
    assert second.seq == first[0] + 1
    store.close()


def test_many_processes_may_open_a_new_database_at_once(postgres: PostgresServer) -> None:
    url = postgres.url(postgres.make_database())
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: open_postgres(url, encoder=ENCODER, stm_size=5), range(6)))
    for store in stores:
        assert store.log.count(EVERYTHING) == 0
        store.close()


def test_a_newer_schema_is_refused(postgres_url: str) -> None:
    open_postgres(postgres_url, encoder=ENCODER, stm_size=5).close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE gcmem_meta SET value = '99' WHERE key = 'schema_version'")
    with pytest.raises(StoreVersionError, match=r"schema 99.*upgrade gcmem"):
        open_postgres(postgres_url, encoder=ENCODER, stm_size=5)


def test_a_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    connection_module._drivers.cache_clear()
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"gcmem\[postgres\]"):
        open_postgres("postgresql://localhost/memory", encoder=ENCODER, stm_size=5)


def test_limits_come_from_the_url_and_writes_wait_for_the_disk(postgres: PostgresServer) -> None:
    name = postgres.make_database()
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    url = f"{postgres.url(name)}&statement_timeout=7&connect_timeout=3&pool_size=2"
    database = PostgresDatabase(url)
    assert database.settings == PostgresSettings(
        statement_timeout_s=7, connect_timeout_s=3, pool_size=2
    )
    with database.reading() as connection:
        shown = [
            connection.execute(f"SHOW {name}").fetchone()
            for name in ("statement_timeout", "synchronous_commit", "timezone")
        ]
    assert shown == [("7s",), ("on",), ("UTC",)]
    database.close()


def fill(store: Store, *, count: int = CHUNKS) -> tuple[tuple[Chunk, ...], Vectors]:
    """Stores clustered unit vectors, the kind that sentence encoders make."""
    rng = np.random.default_rng(7)
    centres = rng.standard_normal((50, ENCODER.dimensions))
    vectors = centres[rng.integers(0, 50, count)] + rng.standard_normal((count, ENCODER.dimensions))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    chunks = [
        chunk(f"n{n}", day=n / 100, user=f"u{n % 40}", metadata={"even": n % 2 == 0})
        for n in range(count)
    ]
    return store.append(chunks, vectors, encoder_id=ENCODER.id), vectors


def recall(store: Store, stored: tuple[Chunk, ...], vectors: Vectors, where: ChunkFilter) -> float:
    """Returns the share of the ten truly nearest that a search finds, over 20 queries."""
    matching = np.array([n for n, c in enumerate(stored) if where.admits(c)])
    queries = vectors[:: len(vectors) // 20]
    found = store.index.search(queries, k=10, where=where)
    shares = []
    for query, hits in zip(queries, found, strict=True):
        nearest = matching[np.argsort(-(vectors[matching] @ query))[:10]]
        true = {stored[n].id for n in nearest}
        shares.append(len(true & {chunk_id for chunk_id, _ in hits}) / len(true))
    return float(np.mean(shares))


def plan_uses_hnsw(store: Store, url: str, search: Callable[[], object]) -> bool:
    """Tells whether a call made the server scan the HNSW index."""

    def scans() -> int:
        with psycopg.connect(url) as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")
            row = connection.execute(
                "SELECT idx_scan FROM pg_stat_user_indexes "
                "WHERE indexrelid = to_regclass('gcmem_vectors_hnsw')"
            ).fetchone()
        return int(row[0]) if row else 0

    def flush() -> None:
        database = store.log._database  # type: ignore[attr-defined]
        with database.reading() as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")

    before = scans()
    search()
    for _ in range(15):  # the pool may hand out another connection than the search's
        flush()
        if scans() > before:
            return True
        time.sleep(0.2)
    return False


def test_selective_filters_lose_no_recall(postgres_url: str) -> None:
    store = open_postgres(postgres_url, encoder=ENCODER, stm_size=5, settings=SMALL)
    stored, vectors = fill(store)
    store.index.build_hnsw()  # type: ignore[attr-defined]
    one_user = ChunkFilter(scope=Scope(user_id="u3"))
    assert not plan_uses_hnsw(
        store, postgres_url, lambda: store.index.search(vectors[:1], k=10, where=one_user)
    )
    assert recall(store, stored, vectors, one_user) == 1.0
    few = ChunkFilter(metadata=(("even", True),), as_of=stored[400].at)
    assert recall(store, stored, vectors, few) == 1.0
    store.close()


def test_wide_searches_use_the_index_and_keep_their_recall(postgres_url: str) -> None:
    store = open_postgres(postgres_url, encoder=ENCODER, stm_size=5, settings=SMALL)
    stored, vectors = fill(store)
    assert recall(store, stored, vectors, EVERYTHING) == 1.0  # exact, as long as none is built
    exact = store.index.search(vectors[:5], k=10, where=EVERYTHING, frontier=2)
    store.index.build_hnsw()  # type: ignore[attr-defined]
    half = ChunkFilter(metadata=(("even", True),))
    for where in (EVERYTHING, half):
        search = partial(store.index.search, vectors[:1], k=10, where=where)
        assert plan_uses_hnsw(store, postgres_url, search)
        assert recall(store, stored, vectors, where) >= 0.95
    found = store.index.search(vectors[:5], k=10, where=EVERYTHING, frontier=2)
    for true, near in zip(exact, found, strict=True):
        assert len({i for i, _ in true} & {i for i, _ in near}) >= 0.9 * len(true)
    # k beyond what an index scan gives: the exact scan takes over.
    assert len(store.index.search(vectors[:1], k=CHUNKS, where=EVERYTHING)[0]) == CHUNKS
    store.close()


def test_a_large_search_without_an_index_says_so_once(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_postgres(
        postgres_url, encoder=ENCODER, stm_size=5, settings=replace(SMALL, exact_below=10)
    )
    _, vectors = fill(store, count=20)
    for _ in range(2):
        store.index.search(vectors[:1], k=3, where=EVERYTHING)
    assert [r.getMessage() for r in caplog.records if "build_hnsw()" in r.getMessage()][1:] == []
    assert "store.index.build_hnsw() builds an index" in caplog.text
    store.close()


def test_reindex_keeps_the_index_and_goes_on_where_it_stopped(postgres_url: str) -> None:
    store = open_postgres(postgres_url, encoder=ENCODER, stm_size=5, settings=SMALL)
    fill(store, count=1200)
    store.index.build_hnsw()  # type: ignore[attr-defined]
    other = HashEncoder(name="other", dimensions=16)

    def stop(done: int, _: int) -> None:
        if done >= 512:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.index.rebuild(other, progress=stop)
    assert store.index.encoder_id == ENCODER.id
    seen: list[int] = []
    assert store.index.rebuild(other, progress=lambda done, _: seen.append(done)) == 1200
    assert seen[0] >= 512
    store.close()
    again = open_postgres(postgres_url, encoder=other, stm_size=5, settings=SMALL)
    assert plan_uses_hnsw(
        again,
        postgres_url,
        lambda: again.index.search(other.encode(["n7"]), k=10, where=EVERYTHING),
    )
    again.close()


def test_a_verdict_on_a_chunk_that_is_being_forgotten_is_not_kept(postgres_url: str) -> None:
    store = open_postgres(postgres_url, encoder=ENCODER, stm_size=5)
    chunks = [replace(chunk(name), id=name) for name in "abc"]
    store.append(chunks, ENCODER.encode(["a", "b", "c"]), encoder_id=ENCODER.id)
    assert store.scores is not None
    assert store.ledger is not None
    key = ScoreKey(scorer="model@1", question="?")
    with psycopg.connect(postgres_url) as forgetting:
        forgetting.execute("DELETE FROM gcmem_chunks WHERE id = 'a'")
        # Not committed yet: to others the chunk is still there.
        assert set(store.log.get(["a", "b"])) == {"a", "b"}
        started = time.monotonic()
        store.scores.put(key, {("a", "b"): 0.9, ("b", "c"): 0.8})
        store.ledger.record([verdict("a", "b"), verdict("b", "c")])
        assert time.monotonic() - started < 10  # it does not wait for the deletion
        forgetting.commit()
    assert store.scores.get(key, [("a", "b"), ("b", "c")]) == {("b", "c"): 0.8}
    assert newer_ends(store, JUDGE, ["a", "b"]) == {"b": ["c"]}
    store.close()


def test_an_interrupted_reindex_keeps_no_vector_of_what_was_forgotten(postgres_url: str) -> None:
    class Stopping(HashEncoder):
        calls = 0

        def encode(self, texts: Sequence[str]) -> Vectors:
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return super().encode(texts)

    store = open_postgres(postgres_url, encoder=ENCODER, stm_size=5)
    chunks = [chunk(f"fact {n}") for n in range(300)]
    store.append(chunks, ENCODER.encode([c.text for c in chunks]), encoder_id=ENCODER.id)
    with pytest.raises(KeyboardInterrupt):
        store.index.rebuild(Stopping(name="other", dimensions=64))
    store.delete([c.id for c in chunks])
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM gcmem_vectors_next").fetchone() == (0,)
    store.close()
