"""Shared by the measurements of `gcmem serve`: a store, a server and requests."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from gcmem import Chunk, Scope
from gcmem.encode import MiniLMEncoder
from gcmem.store import SQLiteLog, open_embedded
from gcmem.types import ChunkFilter

START = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 1000
NOISE = 0.9
SEED = 0
ENCODER = MiniLMEncoder()
PLACES = "Porto Lisbon Rome Oslo Ghent Turin Lyon Graz".split()
TOPICS = [
    f"{who} {does} {what}."
    for who in ("I", "My sister", "The team", "Our neighbour")
    for does, what in (
        ("moved to", "{place}"),
        ("ordered the train ticket to", "{place}"),
        ("works at the office in", "{place}"),
        ("cooked dinner after the trip from", "{place}"),
        ("reads the newspaper of", "{place}"),
        ("repaired the bike bought in", "{place}"),
        ("studies at the university of", "{place}"),
        ("watched the match against", "{place}"),
    )
]
QUESTIONS = ("Where do I live?", "Where does my sister work?", "Which match did the team watch?")


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    ready_s: float


@contextmanager
def served(path: Path) -> Iterator[Served]:
    """Runs `gcmem serve` on a store and stops it with SIGTERM at the end."""
    port = free_port()
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "gcmem", "serve", "--path", str(path), "--port", str(port),
         "--rate", "0"],
        stderr=(path.parent / "server.log").open("wb"),
    )  # fmt: skip
    try:
        wait_until_ready(port, process)
        yield Served(process, port, time.perf_counter() - started)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def cpu_s(server: subprocess.Popen[bytes]) -> float:
    """Returns the processor time so far; other load on the machine hardly affects it."""
    spent = psutil.Process(server.pid).cpu_times()
    return float(spent.user + spent.system)


def fill(path: Path, *, chunks: int, users: int) -> None:
    """Appends chunks to the log directly, with vectors drawn around those of their topics."""
    rng = np.random.default_rng(SEED)
    centres = ENCODER.encode([topic.format(place=PLACES[0]) for topic in TOPICS])
    store = open_embedded(path, encoder=ENCODER, stm_size=10)
    for first in range(0, chunks, BATCH):
        numbers = range(first, min(chunks, first + BATCH))
        topics = rng.integers(len(TOPICS), size=len(numbers))
        noise = rng.standard_normal((len(numbers), ENCODER.dimensions)).astype(np.float32)
        noise *= NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
        vectors = centres[topics] + noise
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        batch = [
            Chunk(
                id=str(uuid.UUID(int=n + 1)),
                text=TOPICS[topic].format(place=PLACES[n // users % len(PLACES)]),
                at=START + timedelta(minutes=n),
                recorded_at=START + timedelta(minutes=n),
                scope=Scope(user_id=f"user {n % users}"),
            )
            for n, topic in zip(numbers, topics, strict=True)
        ]
        store.append(batch, vectors, encoder_id=ENCODER.id)
    store.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_until_ready(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.02)
    raise SystemExit("the server did not become ready")


def request(
    connection: http.client.HTTPConnection,
    path: str,
    body: dict[str, Any] | None = None,
    *,
    key: str | None = None,
) -> tuple[int, bytes]:
    """Sends a POST with the body, or a GET without one."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    if body is None:
        connection.request("GET", path, headers=headers)
    else:
        connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    return response.status, response.read()


def timed(work: Callable[[], tuple[int, bytes]]) -> tuple[float, int, bytes]:
    started = time.perf_counter()
    status, reply = work()
    return (time.perf_counter() - started) * 1000, status, reply


def stored_ids(path: Path) -> set[str]:
    log = SQLiteLog(path)
    try:
        return {chunk.id for chunk in log.scan(ChunkFilter())}
    finally:
        log.close()


def p50_p95_p99(values: list[float]) -> str:
    points = np.percentile(values, [50, 95, 99])
    return f"{points[0]:.0f} / {points[1]:.0f} / {points[2]:.0f} ms"
