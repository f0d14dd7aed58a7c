"""Measures every store in one run: `make bench-stores`. Prints a table and saves it in benchmarks/.

Chunks are appended directly to the log, with vectors drawn around topics, so the encoder and κ cost
nothing here. The tests' own servers run on the same machine: PostgreSQL over a unix socket, Redis
over loopback. Qdrant is the client's local mode: in memory, not durable, up to 10,000 chunks. It
says nothing about a Qdrant server.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tests.postgres_server import PostgresServer, temporary_server
from tests.redis_server import RedisServer

from gcmem import Chunk, Scope
from gcmem.protocols import RecencyBuffer, Store, Vectors
from gcmem.retrieve import retrieve
from gcmem.store import open_embedded
from gcmem.store.postgres import PgVectorIndex, PostgresSettings, open_postgres
from gcmem.store.redis.buffer import RedisBuffer
from gcmem.store.redis.client import RedisSettings
from gcmem.store.urls import open_store
from gcmem.types import ChunkFilter

START = datetime(2026, 1, 1, tzinfo=UTC)
USERS = 100
TOPICS = 200
SPREAD = 0.6
DIMENSIONS = 384
BATCH = 1000
STM_SIZE = 10
CLIENTS = 8
SECONDS = 0.6
"""How long each kind of call is repeated."""
MOST_SEARCHES = 300
RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((TOPICS, DIMENSIONS)).astype(np.float32)
ONE_USER = ChunkFilter(scope=Scope(user_id="user 7"))
EVERYONE = ChunkFilter()


class NoEncoder:
    """Provides the encoder's id and is never called."""

    id = "bench@1"
    dimensions = DIMENSIONS

    def encode(self, texts: Any) -> Vectors:
        raise NotImplementedError

    def count_tokens(self, texts: Any) -> list[int]:
        raise NotImplementedError


ENCODER = NoEncoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Measurements of one store at one size; None if not measured."""

    store: str
    chunks: int
    batch_add_per_s: float | None = None
    single_add_per_s: float | None = None
    single_add_8_clients_per_s: float | None = None
    user_ms: tuple[float, float] | None = None
    user_8_clients_ms: tuple[float, float] | None = None
    user_8_clients_per_s: float | None = None
    everyone_ms: tuple[float, float] | None = None
    everyone_8_clients_ms: tuple[float, float] | None = None
    recall: float | None = None
    index_build_s: float | None = None
    disk_mb: float | None = None
    memory_mb: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "stores.json")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # slow exact searches are measured on purpose
    load_before, started = os.getloadavg(), time.perf_counter()
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = stack.enter_context(RedisServer(folder / "redis"))
        for size in arguments.sizes:
            for measure in (embedded, postgres, qdrant):
                rows += measure(folder, redis, size)
                print(
                    f"{size} {measure.__name__}: {time.perf_counter() - started:.0f} s", flush=True
                )
    machine = {
        "python": platform.python_version(),
        "cores": psutil.cpu_count(),
        "cpu": cpu(),
        "load_before": load_before,
        "load_after": os.getloadavg(),
        "seconds": round(time.perf_counter() - started),
    }
    result = {"machine": machine, "rows": [asdict(row) for row in rows]}
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    print(table(rows))
    print(f"load average {load_before[0]:.1f} before, {os.getloadavg()[0]:.1f} after")


def embedded(folder: Path, redis: RedisServer, size: int) -> list[Row]:
    path = folder / f"{size}.db"
    store = open_embedded(path, encoder=ENCODER, stm_size=STM_SIZE)
    filled = fill(store, size)
    store.close()
    disk_mb = path.stat().st_size / 1e6
    before = psutil.Process().memory_info().rss
    store = open_embedded(path, encoder=ENCODER, stm_size=STM_SIZE)
    search(store, EVERYONE)
    memory = psutil.Process().memory_info().rss - before
    row = Row(
        store="embedded",
        chunks=size,
        batch_add_per_s=filled,
        **searches(store),
        **singles(store),
        disk_mb=disk_mb,
        memory_mb=memory / 1e6,
    )
    rows = [row, *with_redis(row, store, redis)]
    store.close()
    return rows


def postgres(folder: Path, redis: RedisServer, size: int) -> list[Row]:
    with temporary_server() as server:
        url = server.make_schema()
        before = disk_mb(server)
        # The threshold is above the size, so that the store needs no index.
        exact = open_postgres(
            url,
            encoder=ENCODER,
            stm_size=STM_SIZE,
            settings=PostgresSettings(exact_below=10 * size, statement_timeout_s=120),
        )
        filled = fill(exact, size)
        on_disk = disk_mb(server) - before
        row = Row(
            store="PostgreSQL, exact",
            chunks=size,
            batch_add_per_s=filled,
            **searches(exact),
            **singles(exact),
            disk_mb=on_disk,
            memory_mb=memory_mb(server),
        )
        rows = [row, *with_redis(row, exact, redis)]
        if size > 20_000:
            rows.append(hnsw(server, url, exact, size, on_disk))
        exact.close()
    return rows


def hnsw(server: PostgresServer, url: str, exact: Store, size: int, on_disk: float) -> Row:
    store = open_postgres(url, encoder=ENCODER, stm_size=STM_SIZE)
    before = disk_mb(server)
    assert isinstance(store.index, PgVectorIndex)
    build_s = timed(store.index.build_hnsw) / 1000
    grown = disk_mb(server) - before
    queries = [around_topics(1) for _ in range(20)]
    found = sum(len(top(store, query) & top(exact, query)) for query in queries)
    row = Row(
        store="PostgreSQL, HNSW",
        chunks=size,
        **searches(store),
        **singles(store),
        recall=found / (10 * len(queries)),
        index_build_s=build_s,
        disk_mb=on_disk + grown,
        memory_mb=memory_mb(server),
    )
    store.close()
    return row


def qdrant(folder: Path, redis: RedisServer, size: int) -> list[Row]:
    if size > 10_000:
        return []
    url = f"sqlite:///{folder}/beside.db?index=qdrant://:memory:"
    store = open_store(url, encoder=ENCODER, stm_size=STM_SIZE)
    row = Row(
        store="SQLite log, Qdrant client in local mode",
        chunks=size,
        batch_add_per_s=fill(store, size),
        **searches(store),
        **singles(store),
    )
    store.close()
    return [row]


def with_redis(row: Row, store: Store, redis: RedisServer) -> list[Row]:
    """Measures adds and `paper` on the same store with its recent chunks in Redis."""
    buffer = RedisBuffer(
        redis.url,
        log=store.log,
        capacity=STM_SIZE,
        settings=RedisSettings(namespace=f"{row.store} {row.chunks}", timeout_s=5),
    )
    rows = []
    stores: list[tuple[str, RecencyBuffer]] = [("log", store.buffer), ("Redis", buffer)]
    for name, used in stores:
        variant = replace(store, buffer=used)
        user = repeated(lambda: search(variant, ONE_USER, "paper"))
        user_8 = at_once(lambda: search(variant, ONE_USER, "paper"))
        rows.append(
            Row(
                store=f"{row.store}; paper, recent chunks from {name}",
                chunks=row.chunks,
                **(singles(variant) if used is buffer else {}),
                user_ms=percentiles(user),
                user_8_clients_ms=percentiles(user_8.spent_ms),
                user_8_clients_per_s=user_8.per_s,
            )
        )
    buffer.close()
    return rows


def fill(store: Store, size: int) -> float:
    """Appends in batches; returns chunks per second."""
    batches = [make_batch(start) for start in range(0, size, BATCH)]
    return size / sum(timed(lambda: append(store, *batch)) for batch in batches) * 1000


def singles(store: Store) -> dict[str, Any]:
    """Measures durable single adds per second, with one client and with eight."""
    alone = repeated(lambda: append(store, *make_batch(0, count=1)))
    return {
        "single_add_per_s": len(alone) / sum(alone) * 1000,
        "single_add_8_clients_per_s": at_once(lambda: append(store, *make_batch(0, count=1))).per_s,
    }


def searches(store: Store) -> dict[str, Any]:
    """Measures the default strategy over one user's chunks and over all chunks."""
    user = repeated(lambda: search(store, ONE_USER))
    user_8 = at_once(lambda: search(store, ONE_USER))
    everyone = repeated(lambda: search(store, EVERYONE))
    everyone_8 = at_once(lambda: search(store, EVERYONE))
    return {
        "user_ms": percentiles(user),
        "user_8_clients_ms": percentiles(user_8.spent_ms),
        "user_8_clients_per_s": user_8.per_s,
        "everyone_ms": percentiles(everyone),
        "everyone_8_clients_ms": percentiles(everyone_8.spent_ms),
    }


def make_batch(start: int, *, count: int = BATCH) -> tuple[list[Chunk], Vectors]:
    chunks = [
        Chunk(
            id=str(uuid.uuid4()),
            text=f"Observation number {n}, of a length that is usual in chat logs, more or less.",
            at=START + timedelta(seconds=n),
            recorded_at=START + timedelta(seconds=n),
            scope=Scope(user_id=f"user {n % USERS}"),
        )
        for n in range(start, start + count)
    ]
    return chunks, around_topics(count)


def around_topics(count: int) -> Vectors:
    noise = RNG.standard_normal((count, DIMENSIONS)).astype(np.float32)
    vectors = CENTRES[RNG.integers(TOPICS, size=count)] + np.float32(SPREAD) * noise
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def append(store: Store, chunks: list[Chunk], vectors: Vectors) -> None:
    store.append(chunks, vectors, encoder_id=ENCODER.id)


def search(store: Store, where: ChunkFilter, strategy: Any = "stratified") -> None:
    """Runs one query like Memory.search(k=10): 10 chunks from up to 30 candidates."""
    queries = around_topics(1)
    retrieve(store, query="q", queries=queries, k=10, pool=30, where=where, strategy=strategy)


def top(store: Store, query: Vectors) -> set[str]:
    return {chunk_id for chunk_id, _ in store.index.search(query, k=10, where=EVERYONE)[0]}


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def repeated(work: Callable[[], object]) -> list[float]:
    work()  # the first call opens and loads; it is not measured
    spent: list[float] = []
    ends = time.perf_counter() + SECONDS
    while len(spent) < 5 or (time.perf_counter() < ends and len(spent) < MOST_SEARCHES):
        spent.append(timed(work))
    return spent


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    spent_ms: list[float]
    per_s: float


def at_once(work: Callable[[], object]) -> AtOnce:
    """Repeats the work in eight threads at once, without pauses."""
    spent: list[float] = []
    started = time.perf_counter()

    def client() -> None:
        while True:
            spent.append(timed(work))
            if time.perf_counter() > started + SECONDS:
                return

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return AtOnce(spent_ms=spent, per_s=len(spent) / (time.perf_counter() - started))


def percentiles(spent_ms: list[float]) -> tuple[float, float]:
    return float(np.percentile(spent_ms, 50)), float(np.percentile(spent_ms, 95))


def disk_mb(server: PostgresServer) -> float:
    """Returns the size of the data folder without the journal, whose size is a setting."""
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    return (
        sum(
            file.stat().st_size
            for file in server.data.rglob("*")
            if file.is_file() and "pg_wal" not in file.parts
        )
        / 1e6
    )


def memory_mb(server: PostgresServer) -> float:
    """Returns the memory of all server processes; shared pages are divided between them."""
    shares: list[int] = [process.memory_full_info().pss for process in process_tree(server)]
    return sum(shares) / 1e6


def process_tree(server: PostgresServer) -> list[psutil.Process]:
    postmaster = psutil.Process(server.pid)
    return [postmaster, *postmaster.children(recursive=True)]


def cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), "")


def table(rows: list[Row]) -> str:
    heads = (
        "store", "chunks", "add/s in batches", "add/s single, 1 / 8 clients",
        "one user, p50 / p95 ms, 1 client", "8 clients", "q/s, 8 clients",
        "everyone, p50 / p95 ms, 1 client", "8 clients", "disk MB", "memory MB",
    )  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = (
            row.store,
            f"{row.chunks:,}",
            number(row.batch_add_per_s),
            f"{number(row.single_add_per_s)} / {number(row.single_add_8_clients_per_s)}",
            pair(row.user_ms),
            pair(row.user_8_clients_ms),
            number(row.user_8_clients_per_s),
            pair(row.everyone_ms),
            pair(row.everyone_8_clients_ms),
            number(row.disk_mb),
            number(row.memory_mb),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def pair(values: tuple[float, float] | None) -> str:
    return "" if values is None else f"{values[0]:.1f} / {values[1]:.1f}"


if __name__ == "__main__":
    main()
