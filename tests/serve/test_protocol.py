"""Limits on connections, with values that a test can wait for: a real server in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from gcmem.serve.http.connections import guarded_protocol
from gcmem.serve.http.limits import Limits

LARGE = b"x" * 20_000_000
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with more than the buffers between two sockets hold."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": LARGE})


async def slow(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers after a second."""
    await asyncio.sleep(1)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def serving(app: object, limits: Limits) -> Iterator[tuple[uvicorn.Server, int]]:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=guarded_protocol(limits),
        port=0,
        lifespan="off",
        log_config=None,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server, server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.3)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def within_s(seconds: float, condition: object) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("closes", [True, False])
def test_a_client_that_does_not_read_its_reply_is_dropped(closes: bool) -> None:
    head = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") if closes else GET
    with serving(large, Limits(write_timeout_s=0.5)) as (server, port), connect(port) as client:
        client.sendall(head)
        assert within_s(5, lambda: server.server_state.connections)
        assert within_s(10, lambda: not server.server_state.connections)


def test_a_client_that_reads_slowly_gets_its_reply() -> None:
    with serving(large, Limits(write_timeout_s=0.5)) as (_, port), connect(port) as client:
        client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        size = 0
        while part := client.recv(400_000):
            size += len(part)
            time.sleep(0.03)
        assert size > len(LARGE)


def test_the_oldest_waiting_connections_of_an_address_give_way() -> None:
    limits = Limits(idle_per_address=3)
    with serving(slow, limits) as (server, port), ExitStack() as stack:
        idle = [stack.enter_context(connect(port)) for _ in range(5)]
        assert within_s(5, lambda: len(server.server_state.connections) == 3)
        assert [is_open(connection) for connection in idle] == [False, False, True, True, True]


def test_connections_that_wait_give_way_to_requests_and_requests_to_nobody() -> None:
    limits = Limits(connections=3, idle_per_address=3)
    with serving(slow, limits) as (server, port), ExitStack() as stack:
        idle = [stack.enter_context(connect(port)) for _ in range(3)]
        assert within_s(5, lambda: len(server.server_state.connections) == 3)
        asking = []
        for _ in range(3):
            connection = stack.enter_context(connect(port))
            connection.sendall(GET)
            asking.append(connection)
            time.sleep(0.1)
        refused = stack.enter_context(connect(port))
        assert b" 503 " in refused.recv(100)
        assert not any(is_open(connection) for connection in idle)
        assert all(b" 204 " in connection.recv(100) for connection in asking)


def test_a_body_that_does_not_come_counts_as_waiting() -> None:
    limits = Limits(idle_per_address=2)
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with serving(slow, limits) as (_, port), ExitStack() as stack:
        halves = [stack.enter_context(connect(port)) for _ in range(3)]
        for connection in halves:
            with suppress(OSError):
                connection.sendall(head)
            time.sleep(0.1)
        assert not is_open(halves[0])
