from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.errors import StoreUnavailableError
from tests.conftest import day
from tests.serve.conftest import app_over


def add(client: TestClient, *texts: str, first_day: int = 0, **fields: Any) -> list[dict[str, Any]]:
    messages = [
        {"content": text, "at": day(first_day + n).isoformat()} for n, text in enumerate(texts)
    ]
    reply = client.post("/v1/memories", json={"messages": messages, **fields})
    assert reply.status_code == 201, reply.text
    found: list[dict[str, Any]] = reply.json()["memories"]
    return found


def test_what_was_added_is_listed_got_and_deleted(client: TestClient) -> None:
    (first, second) = add(client, "city=Rome", "city=Oslo", user_id="ana", metadata={"a": 1})
    assert first["user_id"] == "ana"
    assert first["metadata"] == {"a": 1}
    page = client.get("/v1/memories", params={"user_id": "ana", "limit": 1}).json()
    assert page.pop("next") is not None
    assert page == {"memories": [first], "next_after_seq": first["seq"]}
    rest = client.get("/v1/memories", params={"after_seq": page["next_after_seq"]}).json()
    assert rest == {"memories": [second], "next": None, "next_after_seq": None}
    got = client.get(f"/v1/memories/{first['id']}").json()
    assert {name: got[name] for name in first} == first
    assert client.delete(f"/v1/memories/{first['id']}").status_code == 204
    assert client.get(f"/v1/memories/{first['id']}").status_code == 404


def test_a_scope_is_erased_whole_and_must_be_named(client: TestClient) -> None:
    add(client, "city=Rome", "diet=vegan", user_id="ana")
    add(client, "city=Oslo", user_id="bob")
    assert client.delete("/v1/memories").status_code == 422
    assert client.delete("/v1/memories", params={"user": "ana"}).status_code == 422
    assert client.delete("/v1/memories", params={"user_id": "ana"}).json() == {
        "forgotten": 2,
        "left": 0,
        "erasing": None,
    }
    (left,) = client.get("/v1/memories").json()["memories"]
    assert left["user_id"] == "bob"


@pytest.mark.parametrize(
    "messages",
    [
        "one text",
        ["two", "texts"],
        [{"role": "assistant", "content": "said"}],
        ["mixed", {"content": "x"}],
    ],
)
def test_messages_come_in_several_shapes(client: TestClient, messages: Any) -> None:
    reply = client.post("/v1/memories", json={"messages": messages})
    assert len(reply.json()["memories"]) == (1 if isinstance(messages, str) else len(messages))


def test_a_search_names_what_went_and_its_witness(client: TestClient) -> None:
    old, new = add(client, "city=Rome", "city=Oslo", user_id="ana")
    found = client.post("/v1/search", json={"query": "city", "user_id": "ana"}).json()
    assert [c["memory"] for c in found["kept"]] == [new]
    (shadow,) = found["shadows"]
    assert shadow["candidate"]["memory"] == old
    assert shadow["witness"]["memory"] == new
    assert shadow["conflict"] == {
        "older": old["id"], "newer": new["id"], "score": 1.0, "oracle": "rule@1",
        "by": None, "reason": None,
    }  # fmt: skip
    assert (shadow["claim"], shadow["witness_claim"], shadow["whole"]) == (None, None, True)
    assert found["kept"][0]["struck"] == found["doubtful"] == found["unjudged"] == []
    assert found["ranked"] == [new["id"]]
    assert found["oracle"] == {"id": "rule@1", "class": None}
    assert found["timings_ms"]["total"] > 0


def test_a_search_as_of_then_sees_what_was_true_then(client: TestClient) -> None:
    old, _ = add(client, "city=Rome", "city=Oslo", user_id="ana")
    body = {"query": "city", "user_id": "ana", "as_of": day(0.5).isoformat()}
    found = client.post("/v1/search", json=body).json()
    assert [c["memory"]["id"] for c in found["kept"]] == [old["id"]]
    assert found["shadows"] == []


def test_modes_rank_shadows_last_or_in_place(client: TestClient) -> None:
    old, new = add(client, "city=Rome", "city=Oslo")
    ranked = client.post("/v1/search", json={"query": "city", "mode": "demote"}).json()["ranked"]
    assert ranked == [new["id"], old["id"]]


def test_paths_answer_over_the_same_candidates(client: TestClient) -> None:
    old, new = add(client, "city=Rome", "city=Oslo")
    body = {"question": "city", "options": ["Rome", "Oslo"], "paths": ["gcmem", "standard"]}
    found = client.post("/v1/ask", json=body).json()
    assert {c["memory"]["id"] for c in found["candidates"]} == {old["id"], new["id"]}
    by_path = {answer["path"]: answer for answer in found["answers"]}
    assert by_path["gcmem"]["kept"] == [new["id"]]
    assert set(by_path["standard"]["kept"]) == {old["id"], new["id"]}


@pytest.mark.filterwarnings("ignore::gcmem.errors.UnqualifiedOracleWarning")
def test_resolve_gives_documents_back_as_they_were(client: TestClient) -> None:
    old = {"id": "a", "text": "city=Rome", "at": "2026-01-01T00:00:00Z", "page": 7}
    new = {"text": "city=Oslo", "at": "2026-02-01T00:00:00Z"}
    undated = {"text": "city=Bonn"}
    found = client.post("/v1/resolve", json={"documents": [old, new, undated]}).json()
    # The tests' oracle was never qualified, but the memory insists.
    assert found["kept"] == [new, undated]
    (shadow,) = found["shadows"]
    assert (shadow["document"], shadow["witness"]) == (old, new)
    assert len(found["undecided"]) == 2


@pytest.mark.filterwarnings("ignore::gcmem.errors.UnqualifiedOracleWarning")
def test_where_nobody_insists_an_unqualified_oracle_only_annotates(memory: Memory) -> None:
    modest = Memory(store=memory.store, encoder=memory.encoder, oracle=memory.oracle)
    documents = [
        {"text": "city=Rome", "at": "2026-01-01T00:00:00Z"},
        {"text": "city=Oslo", "at": "2026-02-01T00:00:00Z"},
    ]
    with TestClient(app_over(modest), base_url="http://localhost") as client:
        assert client.get("/v1/qualify").json()["may_remove"] is False
        found = client.post("/v1/resolve", json={"documents": documents}).json()
    assert found["kept"] == documents
    assert [shadow["document"] for shadow in found["shadows"]] == documents[:1]


def test_the_timeline_marks_what_is_known_to_be_outdated(
    client: TestClient, memory: Memory
) -> None:
    old, new = add(client, "city=Rome", "city=Oslo", user_id="ana")
    client.post("/v1/search", json={"query": "city", "user_id": "ana"})
    before = client.get("/v1/history", params={"user_id": "ana"}).json()["memories"]
    # Neither a GET nor a search that asks an oracle leaves a verdict behind.
    assert [m["shadowed_by"] for m in before] == [None, None]
    memory.judge()
    newest, oldest = client.get("/v1/history", params={"user_id": "ana"}).json()["memories"]
    unsaid = {"judged": True, "pinned": False, "rejected": []}
    current = {"outcome": "current", "shadowed_by": None, **unsaid}
    assert newest == {**new, **current}
    witness = {
        "witness": new["id"], "score": 1.0, "oracle": memory.judging.id,
        "by": "model", "reason": "", "ended": [],
    }  # fmt: skip
    assert oldest == {**old, "outcome": "outdated", "shadowed_by": witness, **unsaid}
    for row in (newest, oldest):
        assert client.get(f"/v1/memories/{row['id']}").json() == row
    then = {"user_id": "ana", "as_of": day(0.5).isoformat()}
    assert client.get("/v1/history", params=then).json()["memories"] == [{**old, **current}]


def test_the_timeline_tells_judged_memories_from_the_others(
    client: TestClient, memory: Memory
) -> None:
    def judged() -> dict[str, bool]:
        rows = client.get("/v1/history").json()["memories"]
        return {row["text"]: row["judged"] for row in rows}

    add(client, "city=Rome", "drink=tea")
    assert judged() == {"city=Rome": False, "drink=tea": False}
    memory.judge()
    add(client, "city=Oslo", "city=Bonn", first_day=3)
    assert judged() == {
        "city=Rome": True,
        "drink=tea": True,
        "city=Oslo": False,
        "city=Bonn": False,
    }


def test_the_schema_says_what_judged_means(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert "judged" in schemas["KnownChunk"]["required"]
    assert "gcmem judge" in schemas["KnownChunk"]["properties"]["judged"]["description"]


@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_of_the_timeline_join_also_where_many_share_a_moment(
    client: TestClient, newest_first: bool
) -> None:
    same = [{"content": f"n={n}", "at": day(3).isoformat()} for n in range(12)]
    client.post("/v1/memories", json={"messages": same})
    add(client, "n=before", "n=then", first_day=1)
    add(client, "n=after", first_day=4)
    params: dict[str, Any] = {"limit": 4, "newest_first": newest_first}
    texts: list[str] = []
    while True:
        page = client.get("/v1/history", params=params).json()
        texts += [m["text"] for m in page["memories"]]
        if page["next"] is None:
            break
        params["before"] = page["next"]
    expected = ["n=before", "n=then", *(f"n={n}" for n in range(12)), "n=after"]
    assert texts == (expected[::-1] if newest_first else expected)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/memories", {"messages": " "}, 422),
        ("/v1/memories", {"messages": []}, 422),
        ("/v1/memories", {"messages": ["x"] * 257}, 422),
        ("/v1/memories", {"messages": "x", "userid": "ana"}, 422),
        ("/v1/memories", {"messages": "x", "at": "2026-01-01T00:00:00"}, 422),
        ("/v1/memories", {"messages": "x", "at": "2999-01-01T00:00:00Z"}, 422),
        ("/v1/memories", {"messages": "x\x00"}, 422),
        ("/v1/search", {"query": "x", "k": 101}, 422),
        ("/v1/search", {"query": "x", "filters": {"a": {"b": 1}}}, 422),
        ("/v1/ask", {"question": "x", "paths": ["gcmem", "gcmem"]}, 422),
        ("/v1/resolve", {"documents": [{"text": "x"}] * 65}, 422),
    ],
)
def test_what_cannot_be_used_is_a_problem_that_says_why(
    client: TestClient, path: str, body: dict[str, Any], status: int
) -> None:
    reply = client.post(path, json=body)
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert problem["status"] == status
    assert problem["detail"]
    assert problem["request_id"] == reply.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "content", "kind", "status"),
    [
        ("GET", "/nothing", b"", "", 404),
        ("GET", "/v1/memories/", b"", "", 404),
        ("PUT", "/v1/search", b"{}", "application/json", 405),
        ("POST", "/v1/search", b"{", "application/json", 400),
        ("POST", "/v1/search", b'{"query": "\xff"}', "application/json", 400),
        ("POST", "/v1/search", b"[" * 5000, "application/json", 400),
        ("POST", "/v1/search", b'{"query": ' + b"1" * 5000 + b"}", "application/json", 400),
        ("POST", "/v1/search", b'{"query": "\\ud800"}', "application/json", 422),
        ("POST", "/v1/search", b"query=x", "application/x-www-form-urlencoded", 415),
        ("POST", "/v1/search", b'{"query": "x"}', "", 415),
    ],
)
def test_the_framework_s_own_errors_are_problems_too(
    client: TestClient, method: str, path: str, content: bytes, kind: str, status: int
) -> None:
    reply = client.request(method, path, content=content, headers={"Content-Type": kind})
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["request_id"] == reply.headers["x-request-id"]


def test_a_request_id_is_kept_where_it_is_harmless(client: TestClient) -> None:
    kept = client.get("/healthz", headers={"X-Request-Id": "trace-7"})
    assert kept.headers["x-request-id"] == "trace-7"
    replaced = client.get("/healthz", headers={"X-Request-Id": "a b\tc"})
    assert len(replaced.headers["x-request-id"]) == 32


def test_a_store_that_fails_is_503_and_a_crash_is_500_without_a_word_of_it(
    client: TestClient, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: Exception) -> Any:
        def broken(*_args: Any, **_kwargs: Any) -> None:
            raise error

        return broken

    monkeypatch.setattr(memory, "get", fail(StoreUnavailableError("disk is full")))
    assert client.get("/v1/memories/x").status_code == 503
    monkeypatch.setattr(memory, "get", fail(RuntimeError("a memory's text")))
    crashed = client.get("/v1/memories/x")
    assert crashed.status_code == 500
    assert "text" not in crashed.json()["detail"]


def test_readiness_follows_the_store(client: TestClient, memory: Memory) -> None:
    for _ in range(100):
        if client.get("/readyz").status_code == 200:
            break
    assert client.get("/readyz").json() == {"status": "ok"}
    memory.store.log.close()
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
