"""One caller's work does not stop the server for the others: real processes, real models."""

from __future__ import annotations

import http.client
import json
import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gcmem.serve.keys import KeyStore
from tests.serve.conftest import Running, start
from tests.serve.loads import costly_resolve, send

ABANDONED_AFTER_S = 2.0
ANSWERED_WITHIN_S = 12.0
"""Alone, a first search takes about a second; the bound leaves room for slow machines."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Running, str, str]]:
    keys = KeyStore(tmp_path / "served.db.keys")
    attacker, victim = keys.create("attacker")[1], keys.create("victim")[1]
    keys.close()
    running = start(tmp_path, "--rate", "0")
    yield running, attacker, victim
    running.process.kill()
    running.process.wait()


def ask(server: Running, path: str, body: dict[str, Any] | None, key: str) -> tuple[int, float]:
    """Returns the status and the seconds that the reply took."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=150)
    started = time.monotonic()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
        return response.status, time.monotonic() - started
    finally:
        connection.close()


def test_abandoned_requests_stop_and_leave_room_for_another_key(
    server: tuple[Running, str, str],
) -> None:
    running, attacker, victim = server
    status, _ = ask(running, "/v1/memories", {"messages": ["I live in Porto."]}, victim)
    assert status == 201
    attack = [
        send(running.port, "/v1/resolve", costly_resolve(seed=n), key=attacker) for n in range(4)
    ]
    time.sleep(0.5)
    during = ask(running, "/v1/search", {"query": "Where do I live?"}, victim)
    ready = ask(running, "/readyz", None, victim)
    time.sleep(max(0.0, ABANDONED_AFTER_S - 0.5 - during[1] - ready[1]))
    for connection in attack:
        connection.close()
    after = ask(running, "/v1/search", {"query": "Where am I at home?"}, victim)
    for status, spent_s in (during, ready, after):
        assert status == 200
        assert spent_s < ANSWERED_WITHIN_S
    assert idle_within(running.process.pid, seconds=10)


def idle_within(pid: int, *, seconds: float) -> bool:
    """Tells whether the process stops using its cores."""
    process = psutil.Process(pid)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.cpu_percent(interval=0.5) < 20:
            return True
    return False


def all_done_within(server: Running, key: str, *, seconds: float) -> bool:
    """Tells whether every request ends; what was added is still judged in the background."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection = server.connect()
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {key}"})
        page = connection.getresponse().read().decode()
        connection.close()
        if "gcmem_requests_in_flight 1.0" in page.splitlines():  # this one
            return True
        time.sleep(0.2)
    return False


def test_a_search_does_not_wait_for_fifty_of_another_key(
    server: tuple[Running, str, str],
) -> None:
    running, attacker, victim = server
    for n in range(12):
        texts = [f"Friend {m} moved to town {n}, and works there." for m in range(8)]
        assert ask(running, "/v1/memories", {"messages": texts}, attacker)[0] == 201
    crowd = [
        send(running.port, "/v1/search", {"query": f"Where does friend {n} live?"}, key=attacker)
        for n in range(50)
    ]
    time.sleep(0.3)
    status, _ = ask(running, "/v1/search", {"query": "Who works in town 3?"}, victim)
    answered, _, _ = select.select(crowd, [], [], 0)
    for connection in crowd:
        connection.close()
    assert status == 200
    assert len(answered) < len(crowd) / 2


def test_an_add_whose_client_leaves_is_stored_whole_or_not_at_all(
    server: tuple[Running, str, str],
) -> None:
    running, _, key = server
    for pause_s in (0.05, 0.3, 1.0):
        body = {"messages": [f"I saw bird {n} of {pause_s} in the garden." for n in range(256)]}
        with send(running.port, "/v1/memories", body, key=key):
            time.sleep(pause_s)
    assert all_done_within(running, key, seconds=20)
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    connection.request("GET", "/v1/memories?limit=1000", headers={"Authorization": f"Bearer {key}"})
    stored = json.loads(connection.getresponse().read())["memories"]
    connection.close()
    assert len(stored) % 256 == 0
    assert len(stored) < 3 * 256  # the first was abandoned long before its texts were encoded


def test_a_request_that_takes_too_long_is_stopped_and_told_so(tmp_path: Path) -> None:
    running = start(tmp_path, "--rate", "0", "--request-timeout", "1")
    try:
        started = time.monotonic()
        status, problem = running.post("/v1/resolve", costly_resolve())
        assert status == 504
        assert problem["type"] == "urn:gcmem:problem:DeadlineExceededError"
        assert "1 s" in problem["detail"]
        assert time.monotonic() - started < 8
        assert idle_within(running.process.pid, seconds=10)
        assert running.post("/v1/memories", {"messages": "I live in Porto."})[0] == 201
    finally:
        running.process.kill()
        running.process.wait()


def test_documents_that_cost_too_much_are_refused_at_once(
    server: tuple[Running, str, str],
) -> None:
    running, attacker, _ = server
    started = time.monotonic()
    status, problem = running.post(
        "/v1/resolve", costly_resolve(chars=15_000), Authorization=f"Bearer {attacker}"
    )
    assert status == 422
    assert "2016 pairs" in problem["detail"]
    assert "send fewer or shorter documents" in problem["detail"]
    assert time.monotonic() - started < 5
