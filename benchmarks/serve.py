"""Measures `gcmem serve` on loopback: `make bench-serve`. Prints a table, saves it in benchmarks/.

Two runs against one server on an embedded store: searches only, with cached verdicts (each question
was asked once before), and searches mixed with adds. Then SIGTERM stops the server, and every
acknowledged chunk must be in the log. Last, a mixed load and an attack by several tenants
(benchmarks/serve_tenants.py).

The store's vectors are drawn around the encoder's vectors of a few dozen topics: encoding 100,000
texts takes minutes and would not change the search times. Questions and added texts go through the
real encoder, and κ reads the real texts.
"""

from __future__ import annotations

import argparse
import http.client
import json
import platform
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from benchmarks import serve_tenants
from benchmarks.serving import (
    PLACES,
    QUESTIONS,
    TOPICS,
    cpu_s,
    fill,
    p50_p95_p99,
    request,
    served,
    stored_ids,
    timed,
)


@dataclass(slots=True)
class Tally:
    """Measurements of all clients; threads only append, which is atomic."""

    search_ms: list[float] = field(default_factory=list)
    add_ms: list[float] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="length of each run")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--tenant-chunks", type=int, default=20_000)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--asked", type=int, default=8, help="users whose memories are searched")
    parser.add_argument(
        "--add-share", type=float, default=0.2, help="adds in the mixed run, 0 to 1"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "serve.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder) / "memory.db", arguments)
        rows += serve_tenants.measure(
            Path(folder) / "tenants.db", seconds=arguments.seconds, chunks=arguments.tenant_chunks
        )
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    machine = {"python": platform.python_version(), "cores": psutil.cpu_count()}
    arguments.out.write_text(json.dumps({"machine": machine, **dict(rows)}, indent=2) + "\n")


def measure(path: Path, arguments: argparse.Namespace) -> list[tuple[str, str]]:
    fill(path, chunks=arguments.chunks, users=arguments.users)
    others = psutil.cpu_percent(interval=2) / 100 * (psutil.cpu_count() or 1)
    with served(path) as server:
        asked = [f"user {n}" for n in range(arguments.asked)]
        cold = Tally()
        for user in asked:
            for question in QUESTIONS:
                search(http.client.HTTPConnection("127.0.0.1", server.port), user, question, cold)
        before_s = cpu_s(server.process)
        warm = load(server.port, asked, arguments, add_share=0.0)
        cpu_ms = 1000 * (cpu_s(server.process) - before_s) / max(1, len(warm.search_ms))
        mixed = load(server.port, asked, arguments, add_share=arguments.add_share)
        stages = stage_means(server.port)
    lost = set(mixed.added) - stored_ids(path)
    seconds = arguments.seconds
    label = f"{arguments.chunks // 1000}k chunks (drawn vectors), {arguments.clients} clients"
    rows = [
        ("others' load before, of the machine's cores", f"{others:.1f} of {psutil.cpu_count()}"),
        ("start to ready", f"{server.ready_s:.2f} s"),
        ("cold search, p50", f"{np.percentile(cold.search_ms, 50):.0f} ms"),
        (f"{label}: warm searches", f"{len(warm.search_ms) / seconds:.0f} /s"),
        (f"{label}: warm searches, p50 / p95 / p99", p50_p95_p99(warm.search_ms)),
        ("warm searches, processor time of the server", f"{cpu_ms:.1f} ms each"),
        ("mixed: searches", f"{len(mixed.search_ms) / seconds:.0f} /s"),
        ("mixed: searches, p50 / p95 / p99", p50_p95_p99(mixed.search_ms)),
        ("mixed: adds", f"{len(mixed.add_ms) / seconds:.0f} /s"),
        ("mixed: adds, p50 / p95 / p99", p50_p95_p99(mixed.add_ms)),
        ("acknowledged writes, lost", f"{len(mixed.added)}, {len(lost)}"),
        ("failed requests", str(len(cold.failed + warm.failed + mixed.failed))),
        ("mean of each stage of a search", stages),
    ]
    if lost or cold.failed or warm.failed or mixed.failed or server.process.returncode:
        print(
            (cold.failed + warm.failed + mixed.failed)[:3],
            server.process.returncode,
            file=sys.stderr,
        )
        raise SystemExit(f"lost {len(lost)} writes, or requests failed")
    return rows


def load(port: int, users: list[str], arguments: argparse.Namespace, *, add_share: float) -> Tally:
    """Runs the clients for the given time, each on its own connection."""
    tally = Tally()
    stop = time.monotonic() + arguments.seconds

    def client(number: int) -> None:
        draw = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while time.monotonic() < stop:
            user = draw.choice(users)
            if draw.random() < add_share:
                add(connection, user, draw, tally)
            else:
                search(connection, user, draw.choice(QUESTIONS), tally)
        connection.close()

    threads = [threading.Thread(target=client, args=(n,)) for n in range(arguments.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def search(connection: http.client.HTTPConnection, user: str, question: str, tally: Tally) -> None:
    body = {"query": question, "user_id": user}
    spent_ms, status, reply = timed(lambda: request(connection, "/v1/search", body))
    tally.search_ms.append(spent_ms)
    if status != 200:
        tally.failed.append(reply.decode())


def add(
    connection: http.client.HTTPConnection, user: str, draw: random.Random, tally: Tally
) -> None:
    text = draw.choice(TOPICS).format(place=draw.choice(PLACES))
    body = {"messages": f"{text} Week {draw.randrange(10_000)}.", "user_id": user}
    spent_ms, status, reply = timed(lambda: request(connection, "/v1/memories", body))
    tally.add_ms.append(spent_ms)
    if status == 201:
        tally.added += [memory["id"] for memory in json.loads(reply)["memories"]]
    else:
        tally.failed.append(reply.decode())


def stage_means(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    figures: dict[str, dict[str, float]] = {}
    for line in connection.getresponse().read().decode().splitlines():
        if line.startswith(("gcmem_stage_seconds_sum", "gcmem_stage_seconds_count")):
            stage = line.partition('stage="')[2].partition('"')[0]
            kind = line.partition("{")[0].rpartition("_")[2]
            figures.setdefault(stage, {})[kind] = float(line.rpartition(" ")[2])
    connection.close()
    return ", ".join(f"{s} {1000 * f['sum'] / f['count']:.1f} ms" for s, f in figures.items())


if __name__ == "__main__":
    main()
