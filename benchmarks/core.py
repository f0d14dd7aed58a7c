"""Measures the embedded core: `make bench-core`. Prints a table and saves it in benchmarks/.

Measurements of the store use random unit vectors; measurements of the encoder use real sentences.
κ is off (no pair conflicts): this is the cost of everything else.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psutil

from gcmem import Chunk, Memory, Scope
from gcmem.encode import MiniLMEncoder
from gcmem.protocols import Store
from gcmem.retrieve import retrieve
from gcmem.settings import Settings
from gcmem.store import open_embedded
from gcmem.testing import RuleOracle
from gcmem.types import ChunkFilter, Strategy

START = datetime(2026, 1, 1, tzinfo=UTC)
USERS = 100
VOCABULARY = 20_000
BATCH = 1000
DIMENSIONS = 384
ENCODER = MiniLMEncoder()
RNG = np.random.default_rng(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "core.json")
    arguments = parser.parse_args()
    rows: list[tuple[str, str]] = [
        ("import gcmem", f"{import_seconds():.3f} s"),
        ("encode one sentence, p50", f"{encode_ms():.1f} ms"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows.append(("add with encoder, single, durable", f"{add_single(Path(folder)):.0f} /s"))
        for size in arguments.sizes:
            rows += measure(Path(folder) / f"{size}.db", size)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    machine = {"python": platform.python_version(), "cores": psutil.cpu_count()}
    arguments.out.write_text(json.dumps({"machine": machine, **dict(rows)}, indent=2) + "\n")


def import_seconds() -> float:
    code = "import time; t = time.perf_counter(); import gcmem; print(time.perf_counter() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(7)
    ]
    return statistics.median(runs)


def encode_ms() -> float:
    texts = [f"In week {n} the 7:40 was packed again, I stood all the way." for n in range(60)]
    return percentile([timed(lambda: ENCODER.encode([t])) for t in texts], 50)


def add_single(folder: Path) -> float:
    with Memory(folder / "single.db", encoder=ENCODER) as memory:
        memory.add("warm up", user_id="u")
        spent = sum(timed(lambda: memory.add(f"fact {n}", user_id="u")) for n in range(300))
    return 300 / spent * 1000


def measure(path: Path, size: int) -> list[tuple[str, str]]:
    store = open_embedded(path, encoder=ENCODER, stm_size=10)
    batches = [make_batch(start) for start in range(0, size, BATCH)]
    spent = sum(timed(lambda: append(store, *b)) for b in batches)
    singles = [make_batch(size + n, count=1) for n in range(300)]
    single_ms = sum(timed(lambda: append(store, *b)) for b in singles)
    store.close()

    before = psutil.Process().memory_info().rss
    opened = time.perf_counter()
    store = open_embedded(path, encoder=ENCODER, stm_size=10)
    one_user = ChunkFilter(scope=Scope(user_id="user 7"))
    search(store, one_user)
    first_user_s = time.perf_counter() - opened
    search(store, ChunkFilter())
    whole_s = time.perf_counter() - opened
    grown = psutil.Process().memory_info().rss - before
    whole = [timed(lambda: search(store, ChunkFilter())) for _ in range(100)]
    dense = [timed(lambda: search(store, ChunkFilter(), "dense")) for _ in range(100)]
    user = [timed(lambda: search(store, one_user)) for _ in range(200)]
    with Memory(
        store=store, encoder=ENCODER, oracle=RuleOracle(lambda a, b: False), require_qualified=False
    ) as memory:
        full = [
            timed(lambda: memory.search(f"What did the user say in week {n}?", user_id="user 7"))
            for n in range(100)
        ]
    label = f"{size // 1000}k chunks"
    return [
        (f"{label}: append, batches of {BATCH}", f"{size / spent * 1000:,.0f} /s"),
        (f"{label}: append, single, durable", f"{300 / single_ms * 1000:,.0f} /s"),
        (f"{label}: open + first search, one user", f"{first_user_s:.2f} s"),
        (f"{label}: open + first search, everything", f"{whole_s:.2f} s"),
        (f"{label}: memory of the loaded index", f"{grown / 1e6:.0f} MB"),
        (f"{label}: file", f"{path.stat().st_size / 1e6:.0f} MB"),
        (f"{label}: retrieve, no scope, p50 / p95", p50_p95(whole)),
        (f"{label}: retrieve, no scope, dense, p50 / p95", p50_p95(dense)),
        (f"{label}: retrieve, one user, p50 / p95", p50_p95(user)),
        (f"{label}: Memory.search, one user, encoder in, p50 / p95", p50_p95(full)),
    ]


def make_batch(start: int, *, count: int = BATCH) -> tuple[list[Chunk], np.ndarray]:
    chunks = [
        Chunk(
            id=str(uuid.UUID(int=n + 1)),
            text=sentence(18),
            at=START + timedelta(seconds=n),
            recorded_at=START + timedelta(seconds=n),
            scope=Scope(user_id=f"user {n % USERS}"),
        )
        for n in range(start, start + count)
    ]
    vectors = RNG.standard_normal((count, DIMENSIONS)).astype(np.float32)
    return chunks, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def append(store: Store, chunks: list[Chunk], vectors: np.ndarray) -> None:
    store.append(chunks, vectors, encoder_id=ENCODER.id)


def search(store: Store, where: ChunkFilter, strategy: Strategy = "stratified") -> None:
    """Runs one query like Memory.search(k=10): 10 chunks from up to 30 candidates."""
    queries = RNG.standard_normal((1, DIMENSIONS)).astype(np.float32)
    retrieve(
        store, query=sentence(6), queries=queries, k=10, pool=30, where=where, strategy=strategy,
        lexical_weight=Settings().lexical_weight,
    )  # fmt: skip


def sentence(words: int) -> str:
    """Returns made-up words, a few of them frequent and most of them rare, as in a language."""
    return " ".join(f"w{n}" for n in np.minimum(RNG.zipf(1.3, words), VOCABULARY))


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, share))


def p50_p95(values: list[float]) -> str:
    return f"{percentile(values, 50):.2f} / {percentile(values, 95):.2f} ms"


if __name__ == "__main__":
    main()
