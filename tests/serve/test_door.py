"""What the server refuses to store or to look for: 422, with a reason, and nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.cli.options import SETTINGS
from gcmem.errors import InvalidInputError
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import NOW, same_slot

LIMIT = 16_384


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory with the settings that `gcmem serve` uses."""
    with Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        settings=SETTINGS,
        require_qualified=False,
        clock=lambda: NOW,
    ) as memory:
        yield memory


@pytest.mark.parametrize(
    "body",
    [
        {"messages": "tea", "metadata": {"a": "x" * LIMIT}},
        {"messages": [{"content": "tea", "metadata": {"a": "é" * (LIMIT // 2)}}]},
        {
            "messages": [{"content": "tea", "metadata": {"a": "x" * (LIMIT // 2)}}],
            "metadata": {"b": "x" * (LIMIT // 2)},
        },
    ],
)
def test_metadata_has_a_limit(client: TestClient, memory: Memory, body: dict[str, Any]) -> None:
    reply = client.post("/v1/memories", json=body)
    assert reply.status_code == 422
    assert f"at most {LIMIT}" in reply.json()["detail"]
    assert memory.get_all() == ()


def test_metadata_up_to_the_limit_is_stored(client: TestClient, memory: Memory) -> None:
    metadata = {"a": "x" * (LIMIT - 9)}
    reply = client.post("/v1/memories", json={"messages": "tea", "metadata": metadata})
    assert reply.status_code == 201
    (chunk,) = memory.get_all()
    with pytest.raises(InvalidInputError, match="at most"):
        memory.update(chunk.id, metadata={"a": "x" * LIMIT})
    assert memory.get(chunk.id).metadata == metadata


@pytest.mark.parametrize("metadata", [{"a": "b\x00"}, {"a\x00": 1}, {"a": [{"b": "\x00"}]}])
def test_a_nul_in_metadata_is_refused(
    client: TestClient, memory: Memory, metadata: dict[str, Any]
) -> None:
    reply = client.post("/v1/memories", json={"messages": "tea", "metadata": metadata})
    assert reply.status_code == 422
    assert "NUL" in reply.json()["detail"]
    assert memory.get_all() == ()


def test_a_filter_with_many_values_is_refused_and_names_no_file(
    client: TestClient, memory: Memory
) -> None:
    filters = {"a": [str(n) for n in range(40_000)]}
    reply = client.post("/v1/search", json={"query": "tea", "filters": filters})
    assert reply.status_code == 422
    assert "at most 50 keys and 500 values" in reply.json()["detail"]
    assert memory.store.log.location not in reply.text
