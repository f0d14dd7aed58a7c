"""When a server answers without a key, and when it never does: real processes, real sockets."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.errors import ServeError
from gcmem.serve.http.access import check_address
from gcmem.serve.http.app import make_app
from gcmem.serve.keys import KeyStore
from gcmem.types import Scope
from tests.serve.conftest import Running, bearer, start

FORWARDED = [
    {"Forwarded": "for=203.0.113.9;host=memory.example.org"},
    {"X-Forwarded-For": "203.0.113.9"},
    {"X-Forwarded-Host": "memory.example.org"},
    {"X-Forwarded-Proto": "https"},
    {"X-Real-IP": "203.0.113.9"},
    {"Via": "1.1 proxy"},
]


def get(
    port: int, path: str = "/v1/memories", *, address: str = "127.0.0.1", **headers: str
) -> int:
    with closing(http.client.HTTPConnection(address, port, timeout=30)) as connection:
        connection.request("GET", path, headers={"Host": "localhost", **headers})
        return connection.getresponse().status


def own_address() -> str:
    """Returns an address of this machine that others could reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.2"  # a machine without a network has no other
        return str(probe.getsockname()[0])


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Running]:
    server = start(folder, *options)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(60)


def serve_fails(folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gcmem", "serve", "--path", str(folder / "m.db"), *options],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    return done.stderr


def test_named_keys_that_are_missing_are_an_error_at_the_start(tmp_path: Path) -> None:
    missing = tmp_path / "no.keys"
    shown = " ".join(serve_fails(tmp_path, "--keys", str(missing)).split())
    assert "gcmem keys create NAME --keys" in shown
    assert not missing.exists()
    empty = tmp_path / "empty.keys"
    empty.touch()
    assert "gcmem keys create NAME" in serve_fails(tmp_path, "--keys", str(empty))


def test_a_server_that_has_keys_never_opens(tmp_path: Path) -> None:
    """Its file is moved away, emptied or replaced: nobody gets in who has no key in it."""
    file = tmp_path / "k.keys"
    ana = bearer(KeyStore(file), "ana")
    with running(tmp_path, "--keys", str(file), "--host", "0.0.0.0") as server:
        away = file.rename(tmp_path / "away")  # before the first request
        assert get(server.port) == 401
        assert get(server.port, **ana) == 401
        KeyStore(tmp_path / "other").create("bob")
        other = bearer(KeyStore(tmp_path / "other"), "carl")
        shutil.move(tmp_path / "other", file)
        assert (get(server.port, **ana), get(server.port, **other)) == (401, 200)
        shutil.move(away, file)
        assert (get(server.port, **ana), get(server.port, **other)) == (200, 401)
        file.unlink()
        file.touch()
        assert get(server.port) == 401


def test_a_file_of_keys_replaced_by_another_takes_effect_at_once(
    memory: Memory, tmp_path: Path
) -> None:
    old, new = KeyStore(tmp_path / "old"), KeyStore(tmp_path / "new")
    ana, bob = bearer(old, "ana"), bearer(new, "bob", scope=Scope(user_id="bob"))
    keys = KeyStore(tmp_path / "old")
    with TestClient(make_app(memory, keys=keys), base_url="http://localhost") as client:
        assert client.get("/v1/whoami", headers=ana).status_code == 200
        old.close()
        new.close()
        (tmp_path / "new").replace(tmp_path / "old")
        assert client.get("/v1/whoami", headers=ana).status_code == 401
        assert client.get("/v1/whoami", headers=bob).json()["user_id"] == "bob"


def test_looking_for_a_key_makes_no_file(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "none")
    assert (keys.list(), keys.required, keys.find("gcm_a_b")) == ((), False, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("headers", FORWARDED, ids=lambda headers: next(iter(headers)))
def test_without_keys_a_request_from_a_proxy_is_refused(
    client: TestClient, headers: dict[str, str]
) -> None:
    reply = client.get("/v1/memories", headers=headers)
    assert reply.status_code == 403
    assert "gcmem keys create NAME" in reply.json()["detail"]


def test_with_a_key_a_proxy_may_stand_before_the_server(
    guarded: TestClient, keys: KeyStore
) -> None:
    ana = bearer(keys, "ana")
    for headers in FORWARDED:
        assert guarded.get("/v1/memories", headers={**ana, **headers}).status_code == 200
        assert guarded.get("/v1/memories", headers=headers).status_code == 401


class PlainProxy(threading.Thread):
    """Forwards as nginx does if told only `proxy_pass`: another Host, HTTP/1.0, nothing added."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def run(self) -> None:
        while True:
            client, _ = self._listener.accept()
            with client, socket.create_connection(("127.0.0.1", self._target)) as server:
                path = client.recv(65536).split(b" ")[1]
                host = f"127.0.0.1:{self._target}".encode()
                server.sendall(
                    b"GET "
                    + path
                    + b" HTTP/1.0\r\nHost: "
                    + host
                    + b"\r\nConnection: close\r\n\r\n"
                )
                while part := server.recv(65536):
                    client.sendall(part)


def test_a_proxy_that_names_this_machine_opens_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        assert get(server.port) == 200
        proxy = PlainProxy(server.port)
        proxy.start()
        assert get(proxy.port, Host="memory.example.org") == 403
        assert get(proxy.port, "/healthz", Host="memory.example.org") == 200


def test_a_connection_from_elsewhere_is_refused_whatever_its_host_says(memory: Memory) -> None:
    app = make_app(memory)
    inside = TestClient(app, base_url="http://127.0.0.1:8321")
    outside = TestClient(app, base_url="http://192.0.2.7:8321")
    assert inside.get("/v1/memories", headers={"Host": "localhost"}).status_code == 200
    assert outside.get("/v1/memories", headers={"Host": "localhost"}).status_code == 403


def test_a_public_address_asks_for_keys_for_good(keys: KeyStore) -> None:
    with pytest.raises(ServeError):
        check_address("0.0.0.0", keys)
    keys.create("ana")
    check_address("0.0.0.0", keys)
    keys.close()
    keys.path.unlink()
    assert keys.required


def test_a_public_server_is_closed_to_whoever_calls_it_localhost(tmp_path: Path) -> None:
    file = tmp_path / "served.db.keys"
    keys = KeyStore(file)
    keys.create("ana")
    keys.close()
    with running(tmp_path, "--host", "0.0.0.0") as server:
        file.unlink()
        for address in {"127.0.0.1", own_address()}:
            assert get(server.port, address=address) == 401


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("http://localhost", "localhost", 200),
        ("http://localhost:8321", "localhost:8321", 200),
        ("https://memory.example.org", "memory.example.org", 200),
        ("https://memory.example.org", "memory.example.org:443", 200),
        ("http://LOCALHOST", "localhost", 200),
        ("http://localhost:3000", "localhost:8321", 403),
        ("http://evil.example", "localhost", 403),
        ("https://localhost.evil.example", "localhost", 403),
        ("null", "localhost", 403),
        ("", "localhost", 403),
        ("http://localhost@evil.example", "localhost", 403),
        ("chrome-extension://abc", "localhost", 403),
    ],
)
def test_a_web_page_of_another_origin_is_refused(
    guarded: TestClient, keys: KeyStore, origin: str, host: str, status: int
) -> None:
    ana = bearer(keys, "ana")
    asked: dict[str, Any] = {"Origin": origin, "Host": host, **ana}
    assert guarded.get("/v1/memories", headers=asked).status_code == status
    body = {"messages": "a=1"}
    added = guarded.post("/v1/memories", json=body, headers=asked)
    assert added.status_code == (201 if status == 200 else 403)
    assert guarded.get("/healthz", headers=asked).status_code == 200


def test_a_web_page_of_another_origin_is_refused_without_keys_too(client: TestClient) -> None:
    for origin, status in (("http://localhost", 200), ("http://localhost:81", 403)):
        assert client.get("/v1/memories", headers={"Origin": origin}).status_code == status
