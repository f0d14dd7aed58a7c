"""Stores are opened by URL, and no password is ever shown."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gcmem import Memory, Settings
from gcmem.errors import EncoderMismatchError, InvalidInputError, MissingExtraError
from gcmem.protocols import Encoder, Store
from gcmem.store import LogBuffer, open_embedded
from gcmem.store.redact import redacted
from gcmem.store.redis.buffer import RedisBuffer
from gcmem.store.redis.client import RedisSettings, connector, split_settings
from gcmem.store.urls import open_store
from gcmem.testing import HashEncoder

ENCODER = HashEncoder()


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_a_path_and_a_sqlite_url_are_the_same_store(tmp_path: Path, form: str) -> None:
    file = tmp_path / "m.db"
    with Memory.from_url(form.format(file), encoder=ENCODER) as memory:
        memory.add("I live in Lyon.")
    with Memory(file, encoder=ENCODER) as memory:
        assert [chunk.text for chunk in memory.get_all()] == ["I live in Lyon."]


def test_sqlite_urls_may_be_relative_or_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///notes.db", "sqlite:///:memory:", "sqlite:///"):
        open_store(url, encoder=ENCODER, stm_size=1).close()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.db"]


@pytest.mark.parametrize(
    ("scheme", "module", "opener"),
    [
        ("postgresql", "gcmem.store.postgres", "open_postgres"),
        ("postgres", "gcmem.store.postgres", "open_postgres"),
    ],
)
def test_servers_are_opened_by_their_adapter(
    monkeypatch: pytest.MonkeyPatch, scheme: str, module: str, opener: str
) -> None:
    asked: list[Any] = []

    def fake(url: str, *, encoder: Encoder, stm_size: int) -> Store:
        asked.append((url, stm_size))
        return open_embedded(":memory:", encoder=encoder, stm_size=stm_size)

    adapter = ModuleType(module)
    setattr(adapter, opener, fake)
    monkeypatch.setitem(sys.modules, module, adapter)
    url = f"{scheme}://ana:pw@db/memory?pool=3"
    with Memory.from_url(url, encoder=ENCODER, settings=Settings(stm_size=7)) as memory:
        assert isinstance(memory.store.buffer, LogBuffer)
    with Memory.from_url(url, encoder=ENCODER, stm="redis://127.0.0.1:1") as memory:
        assert isinstance(memory.store.buffer, RedisBuffer)
    assert asked == [(url, 7), (url, 10)]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://ana:pw@db/x", "no store has the scheme 'mysql'"),
        ("redis://:pw@host", "pass it as stm"),
        ("sqlite://notes.db", "sqlite:////absolute.db"),
        ("", "empty"),
    ],
)
def test_other_urls_are_refused_with_what_to_write(url: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        open_store(url, encoder=ENCODER, stm_size=1)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("stm", "message"),
    [
        ("http://:pw@host", "redis\\+sentinel"),
        ("redis://:pw@host?trust_s=0", "trust_s=0.0"),
        ("redis://:pw@host?trust_s=nan", "trust_s=nan"),
        ("redis://:pw@host?retries=many", "many"),
        ("redis://:pw@host?colour=red", "colour"),
        ("redis://:pw@host:port", "not a usable Redis URL"),
        ("redis+sentinel://:pw@host:26379", "name the service"),
        ("redis+cluster://:pw@", "names no host"),
        ("redis+cluster://:pw@[::1", "not a usable Redis URL"),
        ("rediss+cluster://:pw@host?ssl_cert_reqs=maybe", "not a usable Redis URL"),
    ],
)
def test_a_bad_buffer_url_is_refused_when_it_is_opened(stm: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        open_store(":memory:", encoder=ENCODER, stm_size=1, stm=stm)
    assert "pw" not in str(caught.value)


def test_a_missing_redis_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"gcmem\[redis\]"):
        open_store(":memory:", encoder=ENCODER, stm_size=1, stm="redis://host")


def test_a_store_of_another_encoder_is_closed_again(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", encoder=HashEncoder(name="other")) as memory:
        memory.add("x")
    with pytest.raises(EncoderMismatchError):
        Memory.from_url(str(tmp_path / "m.db"), encoder=ENCODER)


def test_options_of_the_buffer_stand_in_its_url() -> None:
    url, settings = split_settings(
        "redis://h/2?trust_s=1.5&namespace=a%2Fb&ssl_ca_certs=%2Fca.pem", RedisSettings(retries=3)
    )
    assert url == "redis://h/2?ssl_ca_certs=%2Fca.pem"
    assert settings == RedisSettings(retries=3, trust_s=1.5, namespace="a/b")


def test_credentials_tls_and_database_reach_the_client() -> None:
    client = connector("rediss://ana:p%40w@h:7000/3?ssl_ca_certs=/ca.pem", RedisSettings())()
    options = client.connection_pool.connection_kwargs
    client.close()
    wanted = {"username": "ana", "password": "p@w", "host": "h", "port": 7000, "db": 3}
    assert wanted.items() <= options.items()
    assert client.connection_pool.connection_class.__name__ == "SSLConnection"
    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (0.5, 0.5)


def test_sentinels_have_credentials_of_their_own() -> None:
    url = "rediss+sentinel://ana:pw@a:1,b/stm/4?sentinel_password=other"
    client = connector(url, RedisSettings())()
    pool = client.connection_pool
    options = pool.connection_kwargs
    assert (pool.service_name, options["username"], options["password"], options["db"]) == (
        "stm", "ana", "pw", 4,
    )  # fmt: skip
    assert pool.connection_class.__name__ == "SentinelManagedSSLConnection"
    watchers = [s.connection_pool.connection_kwargs for s in pool.sentinel_manager.sentinels]
    assert [(w["host"], w["port"], w["password"]) for w in watchers] == [
        ("a", 1, "other"), ("b", 26379, "other"),
    ]  # fmt: skip
    client.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://:pw@h", "redis://:***@h"),
        ("postgresql://ana:pw@h:5432/db?sslmode=require", "postgresql://ana:***@h:5432/db?sslmode=require"),
        ("postgresql://ana:p@w/x?y@h/db", "postgresql://ana:***@h/db"),
        ("qdrant://h?api_key=abc&prefer_grpc=1", "qdrant://h?api_key=***&prefer_grpc=1"),
        ("unix:///s?db=0&password=pw", "unix:///s?db=0&password=***"),
        ("/home/ana/m.db", "/home/ana/m.db"),
    ],
)  # fmt: skip
def test_passwords_are_hidden(url: str, shown: str) -> None:
    assert redacted(url) == shown
