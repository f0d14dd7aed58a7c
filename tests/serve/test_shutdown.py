"""A server that is told to stop finishes what it accepted."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from gcmem.store import SQLiteLog
from gcmem.types import ChunkFilter
from tests.serve.conftest import Running, start
from tests.serve.loads import costly_resolve, send

WRITERS = 6
LOAD_S = 1.5
QUEUED = 63


def test_a_stop_under_load_loses_no_acknowledged_write(tmp_path: Path) -> None:
    server = start(tmp_path, "--rate", "0")
    acknowledged: list[str] = []
    stopped = threading.Event()
    threads = [
        threading.Thread(target=write, args=(server, n, acknowledged, stopped))
        for n in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(LOAD_S)
    server.process.send_signal(signal.SIGTERM)
    status = server.process.wait(30)
    stopped.set()
    for thread in threads:
        thread.join()
    assert status == 0
    log = SQLiteLog(server.store)
    stored = [chunk.id for chunk in log.scan(ChunkFilter())]
    log.close()
    assert len(acknowledged) > WRITERS
    assert set(acknowledged) <= set(stored)
    # Whatever was stored beyond that was accepted, and its reply lost with the connection.
    assert len(stored) - len(acknowledged) <= WRITERS
    address, *lines = server.log.read_text().splitlines()
    assert f":{server.port}/" in address
    events = [json.loads(line)["event"] for line in lines]
    assert events[0] == "listening"
    assert events[-1] == "stopped"


def test_a_stop_answers_every_request_that_waits(tmp_path: Path) -> None:
    """Writes and costly reads: each gets its reply, or is told to come back."""
    server = start(tmp_path, "--rate", "0", "--grace", "3")
    try:
        # Distinct users, so that no read is answered from what another has left behind.
        waiting = [
            send(server.port, "/v1/resolve", costly_resolve(documents=24, seed=n))
            if n % 3 == 0
            else send(server.port, "/v1/memories", {"messages": f"note {n}", "user_id": str(n)})
            for n in range(QUEUED)
        ]
        time.sleep(0.5)
        half_sent = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        half_sent.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\n")
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        half_sent.sendall(
            b'Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{"query": "x"}'
        )
        replies = [reply_to(connection) for connection in (*waiting, half_sent)]
        assert server.process.wait(30) == 0
    finally:
        server.process.kill()
        server.process.wait()
    statuses = Counter(status for status, _, _ in replies)
    assert set(statuses) <= {200, 201, 503}, statuses
    assert statuses[201] > 0
    assert statuses[503] > 0
    for status, headers, body in replies:
        if status == 503:
            assert json.loads(body)["type"] == "urn:gcmem:problem:StoppingError"
            assert headers["Connection"] == "close"
            assert int(headers["Retry-After"]) > 0
    assert replies[-1][0] == 503  # it came too late to be accepted
    acknowledged = {
        memory["id"]
        for status, _, body in replies
        if status == 201
        for memory in json.loads(body)["memories"]
    }
    log = SQLiteLog(server.store)
    stored = {chunk.id for chunk in log.scan(ChunkFilter())}
    log.close()
    assert acknowledged == stored  # and what was refused is not there


def reply_to(connection: socket.socket) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Returns status, headers and body; raises where the server hung up without a reply."""
    with connection:
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, response.headers, response.read()


def test_an_address_in_use_is_told_before_anything_is_served(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "gcmem", "serve", "--path", str(tmp_path / "m.db"),
             "--host", "127.0.0.1", "--port", str(port)],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "--port" in done.stderr
    assert "listening" not in done.stdout + done.stderr


def write(server: Running, number: int, acknowledged: list[str], stopped: threading.Event) -> None:
    connection = server.connect()
    count = 0
    while not stopped.is_set():
        count += 1
        body = json.dumps({"messages": f"writer {number} saw {count}", "user_id": str(number)})
        try:
            connection.request("POST", "/v1/memories", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            reply = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            break
        if response.status == 201:
            acknowledged.extend(memory["id"] for memory in reply["memories"])
    connection.close()
