"""gcmem serve and gcmem mcp over HTTP: they say where they listen, and stop in an orderly way."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gcmem.serve.http.addresses import url_of

STOPS_WITHIN_S = 30


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def started(tmp_path: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs a server; yields its process and the first line that it prints on stderr."""
    with subprocess.Popen(
        [sys.executable, "-m", "gcmem", *arguments, "--path", str(tmp_path / "m.db")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            yield process, process.stderr.readline()
        finally:
            process.kill()


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            status: int = reply.status
            return status
    except urllib.error.HTTPError as error:
        return error.code


def test_serve_prints_the_address_to_open_before_its_logs(tmp_path: Path) -> None:
    port = free_port()
    with started(tmp_path, "serve", "--port", str(port)) as (process, first):
        assert f"http://127.0.0.1:{port}/" in first
        assert not first.startswith("{")
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["event"] == "listening"
        assert status_of(f"http://127.0.0.1:{port}/") == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOPS_WITHIN_S) == 0


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_mcp_over_http_prints_where_it_listens_and_stops_cleanly(
    tmp_path: Path, stop: signal.Signals
) -> None:
    with started(tmp_path, "mcp", "--transport", "http", "--port", "0") as (process, first):
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", first)
        assert found is not None, first
        assert int(found[1]) > 0  # the real one, also where any free port was asked for
        assert status_of(found[0]) in (400, 406)  # it answers, and wants to be spoken to in MCP
        process.send_signal(stop)
        assert process.wait(STOPS_WITHIN_S) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_an_open_stream_does_not_keep_mcp_from_stopping(tmp_path: Path) -> None:
    with started(tmp_path, "mcp", "--transport", "http", "--port", "0") as (process, first):
        found = re.search(r":(\d+)/mcp", first)
        assert found is not None
        with socket.create_connection(("127.0.0.1", int(found[1]))) as idle:
            idle.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n")
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOPS_WITHIN_S) == 0


@pytest.mark.parametrize("command", [("serve",), ("mcp", "--transport", "http")])
def test_a_port_in_use_is_one_line_and_no_address(tmp_path: Path, command: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with started(tmp_path, *command, "--port", port) as (process, first):
            assert first.startswith("gcmem: can't listen on")
            assert port in first
            assert process.wait(STOPS_WITHIN_S) == 1
            assert process.stderr is not None
            assert process.stderr.read() == ""


def test_addresses_can_be_opened_in_a_browser() -> None:
    assert url_of("127.0.0.1", 8321) == "http://127.0.0.1:8321/"
    assert url_of("::1", 1) == "http://[::1]:1/"
    assert url_of("0.0.0.0", 80) == "http://localhost:80/"
    assert url_of("::", 80) == "http://localhost:80/"
