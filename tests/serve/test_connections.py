"""Connections that send too much, too slowly or nothing, against a real server."""

from __future__ import annotations

import http.client
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.serve.conftest import Running, start

HEADER_TIMEOUT_S = 1.0
IDLE = 1100
BLOCK = b"x" * 65_536
HUGE = 134_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(
        tmp_path_factory.mktemp("connections"),
        "--rate", "0", "--header-timeout", str(HEADER_TIMEOUT_S),
    )  # fmt: skip
    yield running
    assert running.is_well()
    running.process.terminate()
    assert running.process.wait(30) == 0
    assert b"Traceback" not in running.log.read_bytes()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Running]:
    """A server with the limits that it has by itself, and few files: 1,024 as on most systems."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        running = start(tmp_path, "--rate", "0")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    yield running
    running.process.kill()
    running.process.wait()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(server: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def reply_to(connection: socket.socket) -> int | None:
    """Returns the status, or None where the server hung up without one."""
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
    except (OSError, http.client.HTTPException):
        return None
    return response.status


def flood(server: Running, sent: list[int]) -> None:
    """Sends one header of 134 MB, as far as the server lets it."""
    with connect(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Big: ")
        for _ in range(HUGE // len(BLOCK)):
            try:
                connection.sendall(BLOCK)
            except OSError:
                return
            sent[0] += len(BLOCK)


def test_a_huge_header_is_cut_and_nobody_else_waits(server: Running) -> None:
    sent = [0]
    attack = threading.Thread(target=flood, args=(server, sent))
    attack.start()
    slowest_s = 0.0
    while attack.is_alive():
        started = time.monotonic()
        assert server.is_well()
        slowest_s = max(slowest_s, time.monotonic() - started)
    attack.join()
    assert sent[0] < HUGE / 4
    assert slowest_s < 2


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Big: " + b"x" * 70_000,
        b"GET /healthz?" + b"x" * 70_000,
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-Many: 1\r\n" * 300 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Big: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
    ids=["a header", "a path", "many headers", "a whole request"],
)
def test_a_head_that_is_too_large_is_refused(server: Running, head: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(head)
        assert reply_to(connection) == 431


def test_a_body_does_not_count_as_a_header(server: Running) -> None:
    body = b'{"messages": "' + b"x" * 200_000 + b'"}'
    with connect(server) as connection:
        connection.sendall(
            b"POST /v1/resolve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        assert reply_to(connection) == 422  # read whole, and then found to be no such request


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: local", b"\r\n"])
def test_a_head_that_does_not_come_ends_the_connection(server: Running, sent: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(sent)
        started = time.monotonic()
        while connection.recv(4096):
            pass
        assert HEADER_TIMEOUT_S / 2 < time.monotonic() - started < HEADER_TIMEOUT_S + 5


def test_a_head_that_drips_ends_the_connection(server: Running) -> None:
    with connect(server) as connection:
        started = time.monotonic()
        with suppress(OSError):  # the server hangs up
            for letter in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 1000:
                connection.sendall(bytes([letter]))
                time.sleep(0.05)
        assert time.monotonic() - started < HEADER_TIMEOUT_S + 5


def test_a_second_request_on_a_connection_has_its_own_time(server: Running) -> None:
    connection = server.connect()
    for _ in range(4):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        time.sleep(HEADER_TIMEOUT_S / 2)
    connection.close()


def test_idle_connections_leave_the_server_reachable(patient: Running) -> None:
    idle = []
    try:
        for number in range(IDLE):
            connection = connect(patient)
            if number % 2:
                connection.sendall(b"GET /healthz HTTP/1.1\r\n")
            idle.append(connection)
        started = time.monotonic()
        for _ in range(5):
            assert patient.is_well()
        assert patient.post("/v1/memories", {"messages": "I live in Porto."})[0] == 201
        assert time.monotonic() - started < 5
    finally:
        for connection in idle:
            connection.close()
