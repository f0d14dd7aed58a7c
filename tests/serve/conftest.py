from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.serve.http.app import make_app
from gcmem.serve.http.limits import Limits
from gcmem.serve.keys import KeyStore
from gcmem.testing import RuleOracle
from gcmem.types import Scope
from tests.conftest import same_slot

READY_WITHIN_S = 60

MakeClient = Callable[..., TestClient]


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[KeyStore]:
    store = KeyStore(tmp_path / "m.db.keys")
    yield store
    store.close()


def app_over(memory: Memory, **options: Any) -> FastAPI:
    return make_app(memory, resolver=RuleOracle(same_slot), **options)


@pytest.fixture
def client(memory: Memory) -> Iterator[TestClient]:
    """A server without keys."""
    app = app_over(memory, limits=Limits(rate_per_s=0))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def guarded(memory: Memory, keys: KeyStore) -> Iterator[TestClient]:
    """A server with keys."""
    app = app_over(memory, keys=keys, limits=Limits(rate_per_s=0))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def bearer(
    keys: KeyStore, name: str, *, scope: Scope | None = None, **rights: bool
) -> dict[str, str]:
    """Makes a key and returns the header that carries it."""
    return {"Authorization": f"Bearer {keys.create(name, scope=scope, **rights)[1]}"}


@dataclass(frozen=True)
class Running:
    """A real `gcmem serve`."""

    process: subprocess.Popen[bytes]
    port: int
    store: Path
    log: Path

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        connection = self.connect()
        try:
            text = body if isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request("POST", path, text, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def is_well(self) -> bool:
        connection = self.connect()
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        finally:
            connection.close()


def start(folder: Path, *options: str) -> Running:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store, log = folder / "served.db", folder / "server.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "gcmem", "serve", "--path", str(store), "--port", str(port),
             *options],
            stderr=stream,
        )  # fmt: skip
    running = Running(process=process, port=port, store=store, log=log)
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        connection = running.connect()
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return running
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    process.kill()
    process.wait()
    raise AssertionError(f"the server did not become ready: {log.read_text()}")
