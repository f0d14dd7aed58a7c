"""What one tenant tries to reach of another's, and does not."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.serve.keys import KeyStore
from gcmem.types import Scope
from tests.conftest import day
from tests.serve.conftest import bearer

SECRET = "safe=4711"
MINE = "safe=1234"


class Tenants:
    """Ana has a key; Bob has a secret."""

    def __init__(self, client: TestClient, memory: Memory, keys: KeyStore) -> None:
        (chunk,) = memory.add(SECRET, user_id="bob", at=day(5), metadata={"user_id": "ana", "x": 1})
        self.bobs_id = chunk.id
        self.memory = memory
        self.keys = keys
        self.client = client
        self.ana = bearer(keys, "ana", scope=Scope(user_id="ana"))
        self.reader = bearer(keys, "reader", scope=Scope(user_id="ana"), read_only=True)
        self.admin = bearer(keys, "admin")
        assert (
            self.post("/v1/memories", {"messages": MINE, "at": day(1).isoformat()}).status_code
            == 201
        )

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self.client.post(path, json=body, headers={**self.ana, **headers})

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers={**self.ana, **headers})


@pytest.fixture
def tenants(guarded: TestClient, memory: Memory, keys: KeyStore) -> Tenants:
    return Tenants(guarded, memory, keys)


def test_a_request_without_a_scope_gets_the_key_s(tenants: Tenants) -> None:
    tenants.memory.judge()
    for reply in (
        tenants.post("/v1/search", {"query": "safe"}),
        tenants.post("/v1/ask", {"question": "safe", "paths": ["standard", "timestamp", "gcmem"]}),
        tenants.get("/v1/memories"),
        tenants.get("/v1/history"),
        tenants.get("/v1/current"),
    ):
        assert reply.status_code == 200
        assert MINE in reply.text
        assert SECRET not in reply.text
        assert tenants.bobs_id not in reply.text
    added = tenants.post("/v1/memories", {"messages": "car=red"}).json()["memories"][0]
    assert added["user_id"] == "ana"


def test_naming_another_scope_is_forbidden(tenants: Tenants) -> None:
    assert tenants.post("/v1/search", {"query": "safe", "user_id": "bob"}).status_code == 403
    assert tenants.post("/v1/ask", {"question": "safe", "user_id": "bob"}).status_code == 403
    assert tenants.post("/v1/memories", {"messages": "x", "user_id": "bob"}).status_code == 403
    for path in ("/v1/memories?user_id=bob", "/v1/history?user_id=bob", "/v1/current?user_id=bob"):
        assert tenants.get(path).status_code == 403
    for path in (f"/v1/memories/{tenants.bobs_id}?user_id=bob", "/v1/memories?user_id=bob"):
        assert tenants.get(path).status_code == 403
        assert tenants.client.delete(path, headers=tenants.ana).status_code == 403
    assert tenants.memory.get(tenants.bobs_id).text == SECRET


def test_naming_the_same_value_twice_or_another_field_narrows_only(tenants: Tenants) -> None:
    twice = tenants.get("/v1/memories?user_id=ana&user_id=bob")
    assert SECRET not in twice.text
    narrower = tenants.get("/v1/memories?agent_id=helper")
    assert narrower.json()["memories"] == []
    reverse = tenants.get("/v1/memories?user_id=bob&user_id=ana")
    assert SECRET not in reverse.text


def test_ids_of_another_scope_do_not_exist(tenants: Tenants) -> None:
    theirs = tenants.get(f"/v1/memories/{tenants.bobs_id}")
    nobodys = tenants.get("/v1/memories/00000000-0000-0000-0000-000000000000")
    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.json()["type"] == nobodys.json()["type"]
    assert (
        tenants.client.delete(f"/v1/memories/{tenants.bobs_id}", headers=tenants.ana).status_code
        == 404
    )
    assert tenants.memory.get(tenants.bobs_id).text == SECRET


@pytest.mark.parametrize(
    "extra",
    [
        {"filters": {"user_id": "bob"}},
        {"filters": {"user_id": "ana"}},
        {"filters": {"x": [1, None, "bob"]}},
        {"filters": {"scope": "bob"}},
        {"filters": {"x' OR 1=1 --": 1}},
        {"as_of": "2026-05-01T00:00:00Z"},
        {"mode": "annotate", "k": 100},
        {"options": ["4711", "1234"]},
    ],
)
def test_filters_and_modes_reach_no_other_scope(tenants: Tenants, extra: dict[str, Any]) -> None:
    reply = tenants.post("/v1/search", {"query": SECRET, **extra})
    assert reply.status_code in (200, 422)
    assert tenants.bobs_id not in reply.text
    if reply.status_code == 200:
        found = reply.json()
        texts = [c["memory"]["text"] for c in found["kept"]]
        assert SECRET not in texts


@pytest.mark.parametrize(
    "body",
    [
        {"query": "safe", "userId": "bob"},
        {"query": "safe", "user_id ": "bob"},
        {"query": "safe", "scope": {"user_id": "bob"}},
        {"query": "safe", "where": {"user_id": "bob"}},
        {"query": "safe", "user_id": ["bob"]},
        {"query": "safe", "user_id": {"$ne": "ana"}},
        {"query": "safe", "user_id": ""},
    ],
)
def test_scopes_in_other_clothes_are_refused(tenants: Tenants, body: dict[str, Any]) -> None:
    assert tenants.post("/v1/search", body).status_code == 422


def test_a_scope_in_metadata_or_query_string_changes_nothing(tenants: Tenants) -> None:
    body = {"messages": [{"content": "dog=yes", "metadata": {"user_id": "bob", "run_id": "r"}}]}
    (added,) = tenants.post("/v1/memories?user_id=bob", body).json()["memories"]
    assert (added["user_id"], added["run_id"]) == ("ana", None)
    assert tenants.memory.history(user_id="bob")[0].id == tenants.bobs_id
    assert len(tenants.memory.history(user_id="bob")) == 1
    reply = tenants.post("/v1/search?user_id=bob", {"query": "safe"})
    assert SECRET not in reply.text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/memories/..%2f",
        "/v1/memories/..%2f..%2fmetrics",
        "/v1/memories/%2e%2e/memories",
        "//v1/memories",
        "/v1//memories",
        "/v1/memories//{id}",
        "/V1/memories",
        "/v1/MEMORIES/{id}",
        "/v1/memories/{id}/",
        "/v1/memories/{id}%00",
        "/v1/memories/{id}%20",
        "/v1/memories/%7B{id}%7D",
        "/v1/memories/{ID}",
        "/v1/memories;user_id=bob",
        "/v1/memories/{id};x",
        "/v1/memories/*",
        "/v1/memories/{id}%0d%0aX-User:bob",
    ],
)
@pytest.mark.parametrize("with_key", [True, False])
def test_paths_in_other_clothes_lead_nowhere(tenants: Tenants, path: str, with_key: bool) -> None:
    path = path.replace("{id}", tenants.bobs_id).replace("{ID}", tenants.bobs_id.upper())
    headers = tenants.ana if with_key else {}
    for method in ("GET", "DELETE"):
        reply = tenants.client.request(method, f"http://localhost{path}", headers=headers)
        assert reply.status_code in (401, 404, 405, 422), reply.text
        assert SECRET not in reply.text
    assert tenants.memory.get(tenants.bobs_id).text == SECRET


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-User": "bob"},
        {"X-User-Id": "bob"},
        {"X-Original-URL": "/metrics"},
        {"X-Forwarded-Prefix": "/v1/memories?user_id=bob"},
        {"X-HTTP-Method-Override": "DELETE"},
        {"Forwarded": "for=127.0.0.1;host=localhost"},
        {"Host": "127.0.0.1"},
        {"Cookie": "Authorization=Bearer x; user_id=bob"},
    ],
)
def test_headers_of_a_proxy_change_neither_who_asks_nor_what(
    tenants: Tenants, headers: dict[str, str]
) -> None:
    assert SECRET not in tenants.get("/v1/memories", **headers).text
    assert tenants.client.get("/v1/memories", headers=headers).status_code == 401


def test_a_second_authorization_header_is_refused(tenants: Tenants) -> None:
    both = [(b"authorization", h["Authorization"].encode()) for h in (tenants.ana, tenants.admin)]
    for order in (both, both[::-1]):
        assert tenants.client.get("/v1/memories", headers=order).status_code == 401


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer gcm_",
        "Bearer gcm_000000000000_" + "A" * 43,
        "Basic YTpi",
        "bearer\tx",
        "Bearer gcm_%' OR 1=1 --_x",
        "Bearer " + "x" * 5000,
    ],
)
def test_what_is_no_key_opens_nothing(tenants: Tenants, value: str) -> None:
    for method, path in (("GET", "/v1/memories"), ("POST", "/v1/search"), ("GET", "/metrics")):
        reply = tenants.client.request(method, path, headers={"Authorization": value})
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")


def test_one_character_of_the_secret_is_not_enough_less(tenants: Tenants) -> None:
    good = tenants.ana["Authorization"]
    for bad in (good[:-1], good + "A", good.replace("gcm_", "GCM_"), good[:-1] + "~"):
        assert tenants.client.get("/v1/whoami", headers={"Authorization": bad}).status_code == 401


def test_a_read_only_key_reads_and_nothing_else(tenants: Tenants) -> None:
    mine = tenants.memory.history(user_id="ana")[0].id
    client, headers = tenants.client, tenants.reader
    assert client.post("/v1/search", json={"query": "safe"}, headers=headers).status_code == 200
    assert client.post("/v1/memories", json={"messages": "x"}, headers=headers).status_code == 403
    assert client.delete(f"/v1/memories/{mine}", headers=headers).status_code == 403
    assert client.delete("/v1/memories?user_id=ana", headers=headers).status_code == 403
    assert client.get("/v1/current", headers=headers).status_code == 200
    assert client.post(f"/v1/memories/{mine}/pin", headers=headers).status_code == 403
    assert client.delete(f"/v1/memories/{mine}/pin", headers=headers).status_code == 403
    said = {"older": mine, "newer": mine, "word": "undo"}
    assert client.post("/v1/verdicts", json=said, headers=headers).status_code == 403


def test_a_bound_key_erases_its_own_scope_if_it_says_so(tenants: Tenants) -> None:
    client, headers = tenants.client, tenants.ana
    assert client.delete("/v1/memories", headers=headers).status_code == 422
    assert client.delete("/v1/memories?agent_id=nobody", headers=headers).json()["forgotten"] == 0
    assert client.delete("/v1/memories?user_id=ana", headers=headers).json()["forgotten"] > 0
    assert tenants.memory.history(user_id="ana") == ()
    assert tenants.memory.get(tenants.bobs_id).text == SECRET


def test_figures_of_everybody_are_not_for_a_bound_key(tenants: Tenants) -> None:
    assert tenants.get("/metrics").status_code == 403
    assert tenants.client.get("/metrics", headers=tenants.admin).status_code == 200


def test_an_unbound_key_sees_every_scope(tenants: Tenants) -> None:
    found = tenants.client.get(f"/v1/memories/{tenants.bobs_id}", headers=tenants.admin)
    assert found.json()["text"] == SECRET


def test_a_witness_of_another_scope_is_not_shown(tenants: Tenants) -> None:
    """Who sees all runs may confirm across them; a timeline shows what its reader may see."""
    (cat,) = tenants.memory.add("pet=cat", user_id="ana", run_id="1", at=day(1))
    (dog,) = tenants.memory.add("pet=dog", user_id="ana", run_id="2", at=day(2))
    body = {"older": cat.id, "newer": dog.id, "word": "confirm"}
    said = tenants.client.post("/v1/verdicts", json=body, headers=tenants.admin)
    assert said.status_code == 201
    whole = tenants.get("/v1/history").json()["memories"]
    assert any(m["shadowed_by"] for m in whole if m["text"] == "pet=cat")
    part = tenants.get("/v1/history?run_id=1").json()["memories"]
    assert [(m["text"], m["shadowed_by"]) for m in part] == [("pet=cat", None)]
    assert [m["outcome"] for m in part] == ["current"]


def test_without_keys_a_name_that_is_not_this_machine_s_is_refused(client: TestClient) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.7", ""):
        assert client.get("/v1/memories", headers={"Host": host}).status_code == 403
    for host in ("localhost:8321", "127.0.0.1", "[::1]:8321", "[::1]"):
        assert client.get("/v1/memories", headers={"Host": host}).status_code == 200


def test_an_untrusted_key_erases_only_what_is_untrusted(tenants: Tenants) -> None:
    mine = tenants.memory.history(user_id="ana")[0].id
    bot = bearer(tenants.keys, "bot", scope=Scope(user_id="ana"), untrusted=True)
    client = tenants.client
    added = [
        client.post("/v1/memories", json={"messages": text}, headers=bot).json()["memories"][0]
        for text in ("safe=1", "safe=2")
    ]
    refused = client.delete(f"/v1/memories/{mine}", headers=bot)
    assert refused.status_code == 403
    assert "trust 1" in refused.json()["detail"]
    assert client.delete(f"/v1/memories/{added[0]['id']}", headers=bot).status_code == 204
    assert client.delete(f"/v1/memories/{tenants.bobs_id}", headers=bot).status_code == 404
    forgotten = client.delete("/v1/memories?user_id=ana", headers=bot)
    assert forgotten.json() == {"forgotten": 1, "left": 1, "erasing": None}
    assert [chunk.id for chunk in tenants.memory.history(user_id="ana")] == [mine]
    whole = client.delete("/v1/memories?user_id=ana", headers=tenants.ana)
    assert whole.json() == {"forgotten": 1, "left": 0, "erasing": None}
