"""The files under deploy/ fit what gcmem accepts: nothing here starts a container."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcmem.store.combined_url import split_index
from gcmem.store.postgres.connection import PostgresSettings, _read_url
from gcmem.store.qdrant.address import parse_url
from gcmem.store.qdrant.server import OLDEST_SERVER
from gcmem.store.redis.client import RedisSettings, connector, split_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = sorted(DEPLOY.glob("compose.*.yaml"))
VARIABLE = re.compile(r"\$\{(\w+):\?[^}]*\}")
VERSION = re.compile(r"v?\d+\.\d+\.\d+")


def read(path: Path) -> dict[str, Any]:
    """Parses a compose file as compose would, with a password for every variable."""
    text = VARIABLE.sub(
        lambda found: f"secret{found[1].lower().replace('_', '')}", path.read_text()
    )
    assert "${" not in text, "a variable without a message for when it is not set"
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def host_of(url: str) -> tuple[str, int]:
    found = re.search(r"@([\w-]+):(\d+)", url)
    assert found is not None
    return found[1], int(found[2])


def test_there_is_a_file_for_each_server_store() -> None:
    assert [path.name for path in FILES] == ["compose.postgres.yaml", "compose.qdrant.yaml"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_images_are_pinned_to_a_version(path: Path) -> None:
    services = read(path)["services"]
    images = {name: service["image"] for name, service in services.items() if "image" in service}
    assert set(services) - set(images) == {"gcmem"}
    for image in images.values():
        assert VERSION.search(image.partition(":")[2]), image
    (base,) = re.findall(r"^FROM (.*)$", (DEPLOY / "Dockerfile").read_text(), re.M)
    assert VERSION.search(base)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_urls_are_what_the_adapters_accept_and_name_services(path: Path) -> None:
    services = read(path)["services"]
    environment = services["gcmem"]["environment"]
    store, stm = environment["GCMEM_STORE"], environment["GCMEM_STM"]
    log, index = split_index(store)
    if index is not None:
        address, options = parse_url(index)
        assert address.api_key == services["qdrant"]["environment"]["QDRANT__SERVICE__API_KEY"]
        assert options == {"timeout_s": 10}
        version = services["qdrant"]["image"].rpartition(":v")[2].split(".")
        assert tuple(map(int, version[:2])) >= OLDEST_SERVER
    conninfo, settings = _read_url(log, PostgresSettings())
    server = services["postgres"]["environment"]
    assert conninfo["user"] == server["POSTGRES_USER"]
    assert conninfo["dbname"] == server["POSTGRES_DB"]
    assert conninfo["password"] == server["POSTGRES_PASSWORD"]
    assert set(conninfo) == {"user", "password", "host", "port", "dbname"}
    assert settings.pool_size == 16
    bare, _ = split_settings(stm, RedisSettings())
    connector(bare, RedisSettings())
    redis = services["redis"]["command"]
    assert f":{redis[redis.index('--requirepass') + 1]}@" in stm
    ports = {"postgres": 5432, "qdrant": 6333, "redis": 6379}
    for url in (log, index, stm):
        if url is not None:
            host, port = host_of(url)
            assert ports[host] == port
            assert services["gcmem"]["depends_on"][host] == {"condition": "service_healthy"}
            assert "healthcheck" in services[host]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_gcmem_is_reachable_with_keys_and_from_this_machine(path: Path) -> None:
    services = read(path)["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["gcmem"]
    assert services["gcmem"]["ports"] == ["127.0.0.1:8000:8000"]
    command = services["gcmem"]["command"]
    assert command[:5] == ["serve", "--host", "0.0.0.0", "--port", "8000"]
    assert command[command.index("--keys") + 1].startswith("/data/")
    assert services["gcmem"]["volumes"] == ["gcmem-data:/data"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_must_last_is_in_a_volume(path: Path) -> None:
    compose = read(path)
    mounted = {
        volume.partition(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", ())
    }
    assert mounted == set(compose["volumes"])
    assert len(mounted) == (3 if "qdrant" in path.name else 2)
