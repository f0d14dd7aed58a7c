"""Measures how tenants of one `gcmem serve`, each with its own key, affect each other.

First, twelve clients search, ask, add and list at once. Then one key attacks: it sends four
expensive requests to /v1/resolve, abandons them after two seconds and repeats without a pause.
Meanwhile another key searches; its latencies are compared with those before the attack.

Alone: `python -m benchmarks.serve_tenants --seconds 10`.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import random
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.serve.loads import costly_resolve, send

from benchmarks.serving import (
    PLACES,
    QUESTIONS,
    TOPICS,
    fill,
    p50_p95_p99,
    request,
    served,
    stored_ids,
    timed,
)
from gcmem import Scope
from gcmem.serve.keys import KeyStore

CLIENTS = 12
SHARES = {"search": 0.5, "ask": 0.15, "add": 0.2, "list": 0.15}
ATTACKERS = 4
ABANDONED_AFTER_S = 2.0
TIMEOUT_S = 150
Rows = list[tuple[str, str]]


class Client:
    """One tenant: a key, a connection, and its measurements."""

    def __init__(self, port: int, key: str, *, seed: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._key = key
        self._draw = random.Random(seed)
        self.spent_ms: dict[str, list[float]] = defaultdict(list)
        self.statuses: Counter[str] = Counter()
        self.added: list[str] = []

    def do(self, kind: str) -> None:
        place, topic = self._draw.choice(PLACES), self._draw.choice(TOPICS)
        question = self._draw.choice(QUESTIONS)
        requests: dict[str, tuple[str, dict[str, Any] | None]] = {
            "search": ("/v1/search", {"query": question}),
            "new search": ("/v1/search", {"query": f"{question} {self._draw.random()}"}),
            "ask": ("/v1/ask", {"question": question, "options": PLACES[:4]}),
            "add": ("/v1/memories", {"messages": topic.format(place=place)}),
            "list": ("/v1/memories?limit=100", None),
        }
        path, body = requests[kind]
        spent_ms, status, reply = timed(lambda: self._request(path, body))
        self.spent_ms[kind].append(spent_ms)
        self.statuses[str(status or "no reply")] += 1
        if status == 201:
            self.added += [memory["id"] for memory in json.loads(reply)["memories"]]

    def _request(self, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        """Returns the status and reply, or status 0 without a reply."""
        try:
            return request(self._connection, path, body, key=self._key)
        except OSError:
            self._connection.close()  # the next request reopens it
            return 0, b""

    def do_random(self) -> None:
        self.do(self._draw.choices(list(SHARES), list(SHARES.values()))[0])


def measure(path: Path, *, seconds: float, chunks: int) -> Rows:
    """Creates a store and returns the rows of both measurements."""
    fill(path, chunks=chunks, users=100)
    keys = KeyStore(path.with_name(path.name + ".keys"))
    secrets = [
        keys.create(f"client {n}", scope=Scope(user_id=f"user {n}"))[1] for n in range(CLIENTS)
    ]
    attacker = keys.create("attacker", scope=Scope(user_id="attacker"))[1]
    keys.close()
    with served(path) as server:
        clients = [Client(server.port, key, seed=n) for n, key in enumerate(secrets)]
        rows = mixed(clients, seconds=seconds, label=f"{chunks // 1000}k chunks")
        rows += attacked(server.port, secrets[0], attacker, seconds=seconds)
    added = {chunk_id for client in clients for chunk_id in client.added}
    lost = added - stored_ids(path)
    if lost:
        raise SystemExit(f"lost {len(lost)} acknowledged writes")
    return [*rows, ("tenants: acknowledged writes, lost", f"{len(added)}, {len(lost)}")]


def mixed(clients: list[Client], *, seconds: float, label: str) -> Rows:
    stop = time.monotonic() + seconds

    def run(client: Client) -> None:
        while time.monotonic() < stop:
            client.do_random()

    in_threads([partial(run, client) for client in clients])
    rows: Rows = []
    for kind in SHARES:
        spent_ms = [ms for client in clients for ms in client.spent_ms[kind]]
        name = f"{label}, {CLIENTS} clients mixed: {kind}"
        rows.append(
            (f"{name}, p50 / p95 / p99", f"{p50_p95_p99(spent_ms)}, {len(spent_ms)} requests")
        )
    statuses = sum((client.statuses for client in clients), Counter[str]())
    return [*rows, (f"{label}, {CLIENTS} clients mixed: replies by status", counted(statuses))]


def attacked(port: int, victim: str, attacker: str, *, seconds: float) -> Rows:
    alone = Client(port, victim, seed=100)
    in_threads([lambda: searches(alone, until=time.monotonic() + seconds)])
    beside = Client(port, victim, seed=200)
    stop = time.monotonic() + seconds
    number = itertools.count()
    in_threads(
        [
            lambda: searches(beside, until=stop),
            *[lambda: attack(port, attacker, number, until=stop) for _ in range(ATTACKERS)],
        ]
    )
    rows: Rows = []
    for kind, name in (("search", "known searches"), ("new search", "new searches")):
        before, during = alone.spent_ms[kind], beside.spent_ms[kind]
        rows.append((f"victim, before the attack: {name}, p50 / p99", p50_p99(before)))
        rows.append((f"victim, under attack: {name}, p50 / p99", p50_p99(during)))
    return [*rows, ("victim, under attack: replies by status", counted(beside.statuses))]


def searches(client: Client, *, until: float) -> None:
    """Searches; nine of ten questions were asked before."""
    for question in itertools.cycle(["new search", *["search"] * 9]):
        if time.monotonic() >= until:
            return
        client.do(question)


def attack(port: int, key: str, number: itertools.count[int], *, until: float) -> None:
    while time.monotonic() < until:
        body = costly_resolve(seed=next(number))
        with send(port, "/v1/resolve", body, key=key):
            time.sleep(ABANDONED_AFTER_S)


def in_threads(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def p50_p99(values: list[float]) -> str:
    if not values:
        return "no reply"
    points = np.percentile(values, [50, 99])
    return f"{points[0]:.0f} / {points[1]:.0f} ms, {len(values)} requests"


def counted(statuses: Counter[str]) -> str:
    return ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="length of each run")
    parser.add_argument("--chunks", type=int, default=20_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, value in measure(
            Path(folder) / "tenants.db", seconds=arguments.seconds, chunks=arguments.chunks
        ):
            print(f"{name}: {value}")
