"""What one request can make a server store and send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.serve.http.limits import Limits
from gcmem.serve.http.rendering import search_json
from gcmem.types import Conflict
from tests.conftest import day
from tests.serve.conftest import app_over

KIB, MIB = 1024, 1024 * 1024


def stored_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("m.db*"))


def test_metadata_of_a_batch_is_not_multiplied(client: TestClient, tmp_path: Path) -> None:
    body = {
        "messages": [f"note {n}" for n in range(256)],
        "metadata": {"note": "x" * (MIB - 20_000)},
    }
    reply = client.post("/v1/memories", json=body)
    assert reply.status_code == 422
    assert len(reply.content) < 10 * KIB
    assert stored_bytes(tmp_path) < 2 * MIB


def test_metadata_that_is_copied_counts_once_for_each_copy(memory: Memory) -> None:
    def body(messages: int) -> dict[str, object]:
        return {
            "messages": [f"note {n}" for n in range(messages)],
            "metadata": {"note": "x" * 10_000},
        }

    app = app_over(memory, limits=Limits(rate_per_s=0, stored_bytes=MIB))
    with TestClient(app, base_url="http://localhost") as client:
        assert client.post("/v1/memories", json=body(100)).status_code == 201
        reply = client.post("/v1/memories", json=body(110))
        assert reply.status_code == 422
        assert "1048576 bytes" in reply.json()["detail"]
        assert "send several requests" in reply.json()["detail"]
        assert client.get("/v1/memories", params={"after_seq": 100}).json()["memories"] == []


def test_metadata_of_a_long_message_counts_once_for_each_chunk(client: TestClient) -> None:
    text = "One more thing happened on that day. " * 20_000
    reply = client.post("/v1/memories", json={"messages": text, "metadata": {"note": "x" * 15_000}})
    assert reply.status_code == 422
    assert "bytes" in reply.json()["detail"]


@pytest.fixture
def narrow(memory: Memory) -> Iterator[TestClient]:
    """A server whose replies are small, over memories of 10 KB each."""
    for n in range(30):
        memory.add(f"slot {n}={n}", at=day(n), metadata={"note": "x" * 10_000}, user_id="ana")
    app = app_over(memory, limits=Limits(rate_per_s=0, reply_bytes=64 * KIB))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def test_a_page_ends_early_and_the_next_goes_on(narrow: TestClient) -> None:
    texts: list[str] = []
    after, pages = 0, 0
    while after is not None:
        reply = narrow.get("/v1/memories", params={"limit": 1000, "after_seq": after})
        assert len(reply.content) <= 64 * KIB
        texts += [memory["text"] for memory in reply.json()["memories"]]
        after = reply.json()["next_after_seq"]
        pages += 1
    assert texts == [f"slot {n}={n}" for n in range(30)]
    assert pages == 5


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_page_of_the_timeline_ends_early_too(narrow: TestClient, newest_first: bool) -> None:
    texts: list[str] = []
    params: dict[str, str | int | bool] = {"limit": 1000, "newest_first": newest_first}
    while True:
        reply = narrow.get("/v1/history", params=params)
        assert len(reply.content) <= 64 * KIB
        texts += [memory["text"] for memory in reply.json()["memories"]]
        if reply.json()["next"] is None:
            break
        params["before"] = reply.json()["next"]
    expected = [f"slot {n}={n}" for n in range(30)]
    assert texts == (expected[::-1] if newest_first else expected)


def test_one_memory_that_is_too_large_is_still_listed(memory: Memory) -> None:
    memory.add("large", metadata={"note": "x" * 15_000})
    memory.add("small")
    app = app_over(memory, limits=Limits(rate_per_s=0, reply_bytes=4 * KIB))
    with TestClient(app, base_url="http://localhost") as client:
        first = client.get("/v1/memories").json()
        assert [item["text"] for item in first["memories"]] == ["large"]
        second = client.get("/v1/memories", params={"after_seq": first["next_after_seq"]}).json()
        assert [item["text"] for item in second["memories"]] == ["small"]
        assert second["next_after_seq"] is None


def test_a_search_says_how_much_did_not_fit(narrow: TestClient, memory: Memory) -> None:
    for n in range(5):
        memory.add(
            f"slot 7={n + 100}", at=day(40 + n), metadata={"note": "x" * 10_000}, user_id="ana"
        )
    for path, body in (
        ("/v1/search", {"query": "slot", "k": 20}),
        ("/v1/ask", {"question": "slot", "k": 20, "options": ["a", "b"]}),
    ):
        reply = narrow.post(path, json=body)
        assert reply.status_code == 200
        assert len(reply.content) <= 64 * KIB
        assert reply.json()["omitted"] > 0
    found = narrow.post("/v1/search", json={"query": "slot 7", "k": 20}).json()
    assert len(found["ranked"]) == 20  # ids are small: all are there
    assert [item["memory"]["id"] for item in found["kept"]] == found["ranked"][: len(found["kept"])]
    few = narrow.post("/v1/search", json={"query": "slot 7", "k": 2}).json()
    assert len(few["kept"]) == len(few["ranked"])  # what is kept has room before the shadows


def test_conflicts_that_no_time_orders_have_their_limit_too(memory: Memory) -> None:
    memory.add(["city=Rome", "food=rice"])
    conflict = Conflict(older="a" * 36, newer="b" * 36, score=0.9, oracle="rule")
    found = replace(memory.search("city"), undecided=(conflict,) * 5000)
    reply = search_json(found, oracle={}, limits=Limits(reply_bytes=64 * KIB))
    assert len(reply) <= 64 * KIB
    shown = json.loads(reply)
    assert len(shown["kept"]) == 2
    assert len(shown["undecided"]) + shown["omitted"] == 5000


def test_pairs_without_a_time_do_not_multiply_a_reply(client: TestClient) -> None:
    documents = [{"text": f"city={n}", "note": "x" * 15_000} for n in range(64)]
    reply = client.post("/v1/resolve", json={"documents": documents})
    assert len(reply.content) < 8 * MIB
    assert reply.status_code == 422


def test_the_largest_reply_stays_within_its_limit(client: TestClient, memory: Memory) -> None:
    for _ in range(2):
        memory.add([f"note {n}" for n in range(256)], metadata={"note": "x" * 16_000})
    for _ in range(2):
        memory.add([f"later {n}" for n in range(256)], metadata={"note": "x" * 16_000})
    reply = client.get("/v1/memories", params={"limit": 1000})
    assert len(reply.content) <= 8 * MIB
    assert json.loads(reply.content)["next_after_seq"] is not None
