"""Bodies that no client should send, against a real server."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator

import pytest

from tests.serve.conftest import Running, start

MAX_BODY = 50_000
BODY_TIMEOUT_S = 1.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(
        tmp_path_factory.mktemp("abuse"),
        "--max-body", str(MAX_BODY), "--body-timeout", str(BODY_TIMEOUT_S), "--rate", "0",
    )  # fmt: skip
    yield running
    assert running.is_well()
    running.process.terminate()
    assert running.process.wait(30) == 0
    assert b"Traceback" not in running.log.read_bytes()


def raw(server: Running, head: str, *parts: bytes, pause_s: float = 0.0) -> tuple[int, bytes]:
    """Sends bytes as they are and returns the status and the reply; the server may hang up."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break
            time.sleep(pause_s)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, response.read()


POST = "POST /v1/memories HTTP/1.1\nHost: localhost\nContent-Type: application/json"


def test_a_body_that_says_it_is_too_large_is_refused_unread(server: Running) -> None:
    status, problem = raw(server, f"{POST}\nContent-Length: {MAX_BODY + 1}")
    assert status == 413
    assert json.loads(problem)["type"] == "urn:gcmem:problem:BodyTooLarge"


def test_a_body_without_a_length_is_cut_off(server: Running) -> None:
    block = b"%x\r\n%s\r\n" % (10_000, b"x" * 10_000)
    status, _ = raw(server, f"{POST}\nTransfer-Encoding: chunked", *[block] * 20)
    assert status == 413


def test_a_length_that_lies_ends_in_a_refusal(server: Running) -> None:
    too_long = b'{"messages": "' + b"x" * (MAX_BODY * 2) + b'"}'
    # What follows the twenty bytes is no request, and the HTTP server says so itself.
    status, _ = raw(server, f"{POST}\nContent-Length: 20", too_long)
    assert status in (400, 413)
    status, _ = raw(server, f"{POST}\nContent-Length: 200", b'{"messages": "short"}')
    assert status == 408


def test_a_slow_body_times_out(server: Running) -> None:
    started = time.monotonic()
    status, problem = raw(
        server, f"{POST}\nContent-Length: 1000", *[b"x"] * 6, pause_s=BODY_TIMEOUT_S / 3
    )
    assert status == 408
    assert json.loads(problem)["type"] == "urn:gcmem:problem:BodyTimeout"
    assert time.monotonic() - started < BODY_TIMEOUT_S * 5


def test_slow_bodies_do_not_keep_others_waiting(server: Running) -> None:
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(f"{POST}\nContent-Length: 100\n\n{{".replace("\n", "\r\n").encode())
        started = time.monotonic()
        assert server.post("/v1/memories", {"messages": "city=Rome"})[0] == 201
        assert time.monotonic() - started < 10
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 40_000,
        b'{"a":' * 8_000,
        b'{"messages": "x", "metadata": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        b"[" * 20_000 + b"]" * 20_000,
        b'{"messages": "x", "metadata": {"a": ' + b"9" * 10_000 + b"}}",
    ],
)
def test_deep_and_strange_json_is_malformed(server: Running, body: bytes) -> None:
    assert server.post("/v1/memories", body)[0] == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nul",
        b'{"messages": "x"',
        b"\xff\xfe",
        b'{"messages": "\xc3\x28"}',
        b"\x00" * 100,
    ],
)
def test_malformed_json_is_400_and_nothing_is_422(server: Running, body: bytes) -> None:
    status, problem = server.post("/v1/memories", body)
    assert status == (400 if body else 422)
    assert problem["status"] == status


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_has_not_are_refused(server: Running, number: str) -> None:
    for path, body in (
        ("/v1/memories", f'{{"messages": "x", "metadata": {{"a": {number}}}}}'),
        ("/v1/search", f'{{"query": "x", "filters": {{"a": {number}}}}}'),
        ("/v1/resolve", f'{{"documents": [{{"text": "x", "score": {number}}}]}}'),
    ):
        status, _ = server.post(path, body)
        assert status == 422 or (path == "/v1/search" and status == 200)
