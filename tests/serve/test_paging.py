"""Pages of memories: what a cursor tells, and what becomes of it when memories are erased."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.serve.keys import KeyStore
from gcmem.types import Chunk, Scope
from tests.conftest import day
from tests.serve.conftest import bearer

WAYS = [
    ("/v1/memories", "cursor", {}),
    ("/v1/history", "before", {"newest_first": "false"}),
    ("/v1/history", "before", {"newest_first": "true"}),
]


def values_of(reply: Any, name: str) -> Iterator[Any]:
    """Yields every value under a name, wherever it stands."""
    if isinstance(reply, dict):
        for key, value in reply.items():
            if key == name:
                yield value
            yield from values_of(value, name)
    elif isinstance(reply, list):
        for value in reply:
            yield from values_of(value, name)


class Ana:
    """A bound key with six memories, two of them of one moment, between those of others."""

    def __init__(self, client: TestClient, memory: Memory, keys: KeyStore) -> None:
        self.client, self.memory = client, memory
        self.headers = bearer(keys, "ana", scope=Scope(user_id="ana"))
        self.admin = bearer(keys, "admin")
        self.chunks: list[Chunk] = []
        for number in range(6):
            memory.add(f"x={number}", user_id="bob", at=day(number))
            self.chunks += memory.add(f"a={number}", user_id="ana", at=day(number // 2))

    def get(self, path: str, **params: Any) -> Any:
        reply = self.client.get(path, params=params, headers=self.headers)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def refused(self, path: str, **params: Any) -> Any:
        reply = self.client.get(path, params=params, headers=self.headers)
        assert reply.status_code in (403, 422)
        return reply.json()

    def texts(self, page: Any) -> list[str]:
        return [memory["text"] for memory in page["memories"]]


@pytest.fixture
def ana(guarded: TestClient, memory: Memory, keys: KeyStore) -> Ana:
    return Ana(guarded, memory, keys)


def replies(ana: Ana, headers: dict[str, str]) -> list[Any]:
    """Returns the replies of every route that shows memories."""
    client, first = ana.client, ana.chunks[0].id
    sent = [
        client.get("/v1/memories", params={"limit": 2}, headers=headers),
        client.get("/v1/history", params={"limit": 2}, headers=headers),
        client.get(f"/v1/memories/{first}", headers=headers),
        client.post("/v1/search", json={"query": "a", "k": 2}, headers=headers),
        client.post("/v1/ask", json={"question": "a", "k": 2}, headers=headers),
        client.post("/v1/memories", json={"messages": "a=9"}, headers=headers),
    ]
    assert all(reply.status_code in (200, 201) for reply in sent)
    return [reply.json() for reply in sent]


def test_a_bound_key_sees_no_sequence_number_and_others_do(ana: Ana) -> None:
    for reply in replies(ana, ana.headers):
        seen = list(values_of(reply, "seq"))
        assert seen
        assert set(seen) == {None}
        assert set(values_of(reply, "next_after_seq")) <= {None}
    for reply in replies(ana, ana.admin):
        seen = list(values_of(reply, "seq"))
        assert seen
        assert all(isinstance(seq, int) for seq in seen)


def test_a_bound_key_does_not_find_numbers_out_by_trying(ana: Ana) -> None:
    assert "cursor" in ana.refused("/v1/memories", after_seq=3)["detail"]
    for forged in ("0.3", "3", "1767225600000000.5", "e30", "W10"):
        ana.refused("/v1/memories", cursor=forged)
        ana.refused("/v1/history", before=forged)
    page = ana.client.get(
        "/v1/memories", params={"after_seq": 3, "limit": 1}, headers=ana.admin
    ).json()
    assert page["next_after_seq"] == page["memories"][0]["seq"] == 4


def test_a_cursor_says_nothing_but_ids_of_the_key_s_own_memories(ana: Ana) -> None:
    for path, _, options in WAYS:
        cursor = ana.get(path, limit=2, **options)["next"]
        ids = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        assert set(ids) <= {chunk.id for chunk in ana.chunks}


@pytest.mark.parametrize(("path", "name", "options"), WAYS)
def test_pages_follow_each_other(ana: Ana, path: str, name: str, options: dict[str, str]) -> None:
    whole = ana.texts(ana.get(path, **options))
    assert sorted(whole) == [f"a={n}" for n in range(6)]
    for limit in (1, 2, 3, 5, 6):
        seen: list[str] = []
        page = ana.get(path, limit=limit, **options)
        while True:
            seen += ana.texts(page)
            if page["next"] is None:
                break
            page = ana.get(path, limit=limit, **options, **{name: page["next"]})
        assert seen == whole


@pytest.mark.parametrize(("path", "name", "options"), WAYS)
@pytest.mark.parametrize("erased", ["the last shown", "the next one", "all shown"])
def test_a_cursor_outlives_one_of_its_memories(
    ana: Ana, path: str, name: str, options: dict[str, str], erased: str
) -> None:
    whole = ana.get(path, **options)["memories"]
    page = ana.get(path, limit=3, **options)
    gone = {"the last shown": whole[2:3], "the next one": whole[3:4], "all shown": whole[:3]}
    ana.memory.forget(ids=[memory["id"] for memory in gone[erased]])
    rest = ana.get(path, limit=3, **options, **{name: page["next"]})
    expected = [m["text"] for m in whole[3:] if m not in gone[erased]]
    assert ana.texts(rest) == expected


@pytest.mark.parametrize(("path", "name", "options"), WAYS)
def test_a_cursor_whose_memories_are_all_erased_says_to_start_again(
    ana: Ana, path: str, name: str, options: dict[str, str]
) -> None:
    whole = ana.get(path, **options)["memories"]
    page = ana.get(path, limit=3, **options)
    ana.memory.forget(ids=[whole[2]["id"], whole[3]["id"]])
    refused = ana.refused(path, **{name: page["next"]})
    assert refused["status"] == 422
    assert "start again" in refused["detail"]


def test_a_cursor_of_somebody_else_leads_nowhere(ana: Ana) -> None:
    for path, name, options in WAYS:
        theirs = ana.client.get(
            path, params={"limit": 1, "user_id": "bob", **options}, headers=ana.admin
        ).json()["next"]
        assert ana.refused(path, **{name: theirs})["status"] == 422


def test_appends_between_two_pages_neither_repeat_nor_hide(ana: Ana) -> None:
    page = ana.get("/v1/memories", limit=4)
    ana.memory.add("a=6", user_id="ana", at=day(0))
    assert ana.texts(ana.get("/v1/memories", cursor=page["next"])) == ["a=4", "a=5", "a=6"]


def test_one_of_two_ways_to_continue_is_enough(ana: Ana) -> None:
    page = ana.client.get("/v1/memories", params={"limit": 1}, headers=ana.admin).json()
    both = {"cursor": page["next"], "after_seq": page["next_after_seq"]}
    assert ana.client.get("/v1/memories", params=both, headers=ana.admin).status_code == 422


def test_pages_begin_at_the_first_moment_there_is(ana: Ana) -> None:
    first = datetime.min.replace(tzinfo=UTC)
    ana.memory.add(["n=1", "n=2", "n=3"], user_id="ana", at=first)
    page = ana.get("/v1/history", limit=1, newest_first=False)
    rest = ana.get("/v1/history", limit=2, newest_first=False, before=page["next"])
    assert ana.texts(page) + ana.texts(rest) == ["n=1", "n=2", "n=3"]
