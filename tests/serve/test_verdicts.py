"""What a server says about verdicts, and what people may say through it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.serve.http.current import MOST_COUNTED
from gcmem.serve.http.limits import Limits
from gcmem.serve.keys import KeyStore
from gcmem.types import Chunk, Scope
from tests.conftest import NOW, day
from tests.serve.conftest import app_over, bearer
from tests.serve.slot_judge import WHY, judging_memory

KIB = 1024
JUDGE = "slots@1 on gcmem-claims@1"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with judging_memory(tmp_path / "m.db") as memory:
        yield memory


def remember(memory: Memory, *texts: str, user_id: str = "ana", **fields: Any) -> list[Chunk]:
    """Adds one text a day."""
    return [
        memory.add(text, user_id=user_id, at=day(number), **fields)[0]
        for number, text in enumerate(texts)
    ]


def search(client: TestClient, query: str, **fields: Any) -> Any:
    reply = client.post("/v1/search", json={"query": query, **fields})
    assert reply.status_code == 200, reply.text
    return reply.json()


def kept(client: TestClient, query: str, **fields: Any) -> set[str]:
    return {item["memory"]["text"] for item in search(client, query, **fields)["kept"]}


def say(client: TestClient, word: str, older: Chunk, newer: Chunk, **fields: Any) -> Any:
    body = {"older": older.id, "newer": newer.id, "word": word, **fields}
    reply = client.post("/v1/verdicts", json=body)
    assert reply.status_code == 201, reply.text
    return reply.json()


# What a search and the timeline show


def test_a_search_strikes_the_outdated_sentence_and_names_both_sentences(
    client: TestClient, memory: Memory
) -> None:
    old, new = remember(memory, "I live in Porto. My cat is called Tom.", "I live in Lisbon.")
    found = search(client, "Where does my cat live?")
    shown = {item["memory"]["id"]: item for item in found["kept"]}
    assert shown[old.id]["memory"]["text"] == "My cat is called Tom."
    assert shown[old.id]["struck"] == [[0, 16]]
    assert shown[new.id]["struck"] == []
    (shadow,) = found["shadows"]
    assert shadow["candidate"]["memory"]["text"] == old.text
    assert (shadow["claim"], shadow["witness_claim"]) == ("I live in Porto.", "I live in Lisbon.")
    assert shadow["whole"] is False
    assert shadow["conflict"] == {
        "older": old.id, "newer": new.id, "score": 1.0, "oracle": JUDGE,
        "by": "model", "reason": WHY,
    }  # fmt: skip
    assert found["oracle"]["id"] == "slots@1"
    assert client.get("/v1/qualify").json()["id"] == "slots@1"


def test_a_doubtful_memory_is_kept_and_the_reply_says_why(
    client: TestClient, memory: Memory
) -> None:
    old, new = remember(memory, "My cat is called Tom.", "My cat is perhaps called Tim.")
    found = search(client, "cat")
    assert {item["memory"]["id"] for item in found["kept"]} == {old.id, new.id}
    assert found["shadows"] == []
    (doubt,) = found["doubtful"]
    assert doubt["candidate"]["memory"]["id"] == old.id
    assert doubt["witness"]["memory"]["id"] == new.id
    assert (doubt["claim"], doubt["witness_claim"]) == (old.text, new.text)
    assert doubt["conflict"]["score"] == 0.6
    assert doubt["conflict"]["by"] == "model"
    newest, oldest = client.get("/v1/history").json()["memories"]
    assert (newest["outcome"], oldest["outcome"]) == ("current", "doubtful")
    assert oldest["shadowed_by"]["witness"] == new.id


def test_what_there_was_no_time_to_judge_is_named(tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db", judge_budget_ms=0) as memory:
        chunks = remember(memory, "I live in Porto.", "I live in Lisbon.")
        with TestClient(app_over(memory), base_url="http://localhost") as client:
            found = search(client, "Where do I live?")
            assert set(found["unjudged"]) == {chunk.id for chunk in chunks}
            assert len(found["kept"]) == 2
            memory.judge()
            found = search(client, "Where do I live?")
            assert found["unjudged"] == []
            assert [item["memory"]["id"] for item in found["kept"]] == [chunks[1].id]


def test_the_timeline_names_the_sentences_that_are_outdated(
    client: TestClient, memory: Memory
) -> None:
    remember(memory, "I live in Porto. My cat is called Tom.", "I live in Lisbon.", "I work a lot.")
    memory.judge()
    rows = {row["text"]: row for row in client.get("/v1/history").json()["memories"]}
    part = rows["I live in Porto. My cat is called Tom."]
    assert part["outcome"] == "outdated"
    assert part["shadowed_by"]["ended"] == ["I live in Porto."]
    assert (part["shadowed_by"]["oracle"], part["shadowed_by"]["reason"]) == (JUDGE, WHY)
    assert rows["I live in Lisbon."]["outcome"] == "current"
    assert rows["I live in Lisbon."]["shadowed_by"] is None


def test_an_answer_shows_what_its_path_has_read(client: TestClient, memory: Memory) -> None:
    remember(memory, "I live in Porto. My cat is called Tom.", "I live in Lisbon.")
    body = {"question": "Where does my cat live?", "paths": ["gcmem", "standard"]}
    found = client.post("/v1/ask", json=body).json()
    struck = {item["memory"]["text"]: item["struck"] for item in found["candidates"]}
    assert struck == {"My cat is called Tom.": [[0, 16]], "I live in Lisbon.": []}
    (shadow,) = found["answers"][0]["shadows"]
    assert shadow["whole"] is False


def test_an_answer_says_what_is_doubtful_and_what_nobody_has_judged(tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db", judge_budget_ms=0) as memory:
        old, _ = remember(memory, "My cat is called Tom.", "My cat is perhaps called Tim.")
        memory.judge()
        (late,) = remember(memory, "My cat is grey.")
        with TestClient(app_over(memory), base_url="http://localhost") as client:
            body = {"question": "What is my cat like?", "paths": ["gcmem", "standard"]}
            gcmem, standard = client.post("/v1/ask", json=body).json()["answers"]
            found = search(client, "What is my cat like?")
    assert [doubt["candidate"]["memory"]["id"] for doubt in gcmem["doubtful"]] == [old.id]
    assert gcmem["unjudged"] == [late.id]
    assert (gcmem["doubtful"], gcmem["unjudged"]) == (found["doubtful"], found["unjudged"])
    assert standard["doubtful"] == standard["unjudged"] == []


@pytest.mark.parametrize(
    ("question", "asked", "view"),
    [
        ("Where do I live?", {}, "current"),
        ("Where did I live before?", {}, "past"),
        ("How has where I live changed?", {}, "changes"),
        ("Where did I live before?", {"view": "current"}, "current"),
        ("Where do I live?", {"view": "auto"}, "current"),
        ("Where do I live?", {"view": "past"}, "past"),
        ("Where do I live?", {"view": "changes"}, "changes"),
    ],
)
def test_a_reply_names_its_view_and_shows_the_past_where_that_is_asked_for(
    client: TestClient, memory: Memory, question: str, asked: dict[str, str], view: str
) -> None:
    old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
    shown = {new.id} if view == "current" else {old.id, new.id}
    found = search(client, question, **asked)
    assert found["view"] == view
    assert {item["memory"]["id"] for item in found["kept"]} == shown
    assert set(found["ranked"]) == shown
    (answer,) = client.post("/v1/ask", json={"question": question, **asked}).json()["answers"]
    assert answer["view"] == view
    assert set(answer["kept"]) == shown
    if view == "changes":
        assert found["ranked"] == answer["kept"] == [old.id, new.id]
    for reply in (found, answer):  # what is shown says that it is outdated
        assert [shadow["candidate"]["memory"]["id"] for shadow in reply["shadows"]] == [old.id]


def test_an_unknown_view_is_refused(client: TestClient) -> None:
    for path, body in (("/v1/search", {"query": "x"}), ("/v1/ask", {"question": "x"})):
        for view in ("future", "", None):
            assert client.post(path, json={**body, "view": view}).status_code == 422


def test_doubts_and_reasons_count_for_the_size_of_a_reply(memory: Memory) -> None:
    for number in range(20):
        name = f"My pet {number}"
        remember(
            memory, f"{name} is called Tom.", f"{name} is perhaps Tim.",
            metadata={"note": "x" * 2000},
        )  # fmt: skip
    app = app_over(memory, limits=Limits(rate_per_s=0, reply_bytes=64 * KIB))
    with TestClient(app, base_url="http://localhost") as client:
        reply = client.post("/v1/search", json={"query": "pet", "k": 20})
        found = reply.json()
        assert len(reply.content) <= 64 * KIB
        assert len(found["kept"]) == 20
        assert 0 < len(found["doubtful"]) < 20
        assert found["omitted"] > 0
        body = {"question": "pet", "k": 20, "paths": ["gcmem", "standard"]}
        reply = client.post("/v1/ask", json=body)
        found = reply.json()
        assert len(reply.content) <= 64 * KIB
        assert len(found["candidates"]) >= 20
        assert 0 < len(found["answers"][0]["doubtful"]) < 20
        assert found["omitted"] > 0


# Pins


def test_a_pinned_memory_stays_until_it_is_unpinned(client: TestClient, memory: Memory) -> None:
    old, _ = remember(memory, "I live in Porto.", "I live in Lisbon.")
    assert kept(client, "Where do I live?") == {"I live in Lisbon."}
    assert client.post(f"/v1/memories/{old.id}/pin").status_code == 204
    found = search(client, "Where do I live?")
    assert {item["memory"]["text"] for item in found["kept"]} == {
        "I live in Porto.", "I live in Lisbon."
    }  # fmt: skip
    assert [doubt["claim"] for doubt in found["doubtful"]] == ["I live in Porto."]
    reply = client.request("DELETE", f"/v1/memories/{old.id}/pin", json={"by": "Ana"})
    assert (reply.status_code, reply.content) == (204, b"")
    assert kept(client, "Where do I live?") == {"I live in Lisbon."}


def known(client: TestClient, chunk: Chunk, **options: Any) -> Any:
    """Returns what is said of a memory, which is the same on the timeline and alone."""
    rows = client.get("/v1/history", **options).json()["memories"]
    (row,) = (row for row in rows if row["id"] == chunk.id)
    assert client.get(f"/v1/memories/{chunk.id}", **options).json() == row
    return row


def test_what_is_pinned_is_seen(client: TestClient, memory: Memory) -> None:
    old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
    assert not known(client, old)["pinned"]
    assert not known(client, old)["judged"]
    memory.judge()
    client.post(f"/v1/memories/{old.id}/pin")
    assert known(client, old)["pinned"]
    assert known(client, old)["outcome"] == "doubtful"
    assert not known(client, new)["pinned"]
    client.delete(f"/v1/memories/{old.id}/pin")
    assert not known(client, old)["pinned"]
    assert known(client, old)["outcome"] == "outdated"


def test_a_pin_says_whose_word_it_is(guarded: TestClient, memory: Memory, keys: KeyStore) -> None:
    (chunk,) = remember(memory, "I live in Porto.")
    key = bearer(keys, "the doctor")
    ledger = memory.store.ledger
    assert ledger is not None
    guarded.post(f"/v1/memories/{chunk.id}/pin", headers=key)
    assert ledger.pins([chunk.id])[chunk.id].by == "the doctor"
    guarded.post(f"/v1/memories/{chunk.id}/pin", json={"by": "Ana"}, headers=key)
    assert ledger.pins([chunk.id])[chunk.id].by == "Ana"


@pytest.mark.parametrize("body", [{"by": ""}, {"by": " "}, {"by": "x" * 257}, {"who": "x"}, []])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_pin_in_other_words_is_refused(
    client: TestClient, memory: Memory, method: str, body: Any
) -> None:
    (chunk,) = remember(memory, "I live in Porto.")
    reply = client.request(method, f"/v1/memories/{chunk.id}/pin", json=body)
    assert reply.status_code == 422
    assert client.request(method, "/v1/memories/nothing/pin").status_code == 404


# Verdicts


def test_a_person_s_word_outranks_the_model_s_until_it_is_taken_back(
    client: TestClient, memory: Memory
) -> None:
    old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
    both = {old.text, new.text}
    assert kept(client, "Where do I live?") == {new.text}
    said = say(client, "reject", old, new, by="Ana", reason="I have two homes.")
    assert said == {
        "older": old.id, "newer": new.id, "score": 0.0, "oracle": "Ana", "by": "person",
        "reason": "I have two homes.", "older_span": [0, 16], "newer_span": [0, 17],
        "recorded_at": NOW.isoformat(),
    }  # fmt: skip
    assert kept(client, "Where do I live?") == both
    assert say(client, "undo", old, new)["score"] == -1.0
    assert kept(client, "Where do I live?") == {new.text}


def test_what_a_person_rejected_is_seen_until_another_word_is_said(
    client: TestClient, memory: Memory
) -> None:
    old, new, newest = remember(memory, "I live in Porto.", "I live in Lisbon.", "I live in Rome.")
    memory.judge()
    assert known(client, old)["rejected"] == []
    say(client, "reject", old, newest, by="Ana")
    say(client, "reject", old, new)
    assert set(known(client, old)["rejected"]) == {new.id, newest.id}
    assert known(client, new)["rejected"] == []
    assert known(client, old)["outcome"] == "current"
    say(client, "confirm", old, new)
    assert known(client, old)["rejected"] == [newest.id]
    say(client, "undo", old, newest, by="Bob")  # whoever says it
    assert known(client, old)["rejected"] == []
    assert known(client, old)["outcome"] == "outdated"
    say(client, "reject", old, newest)
    before = {"as_of": day(1.5).isoformat()}
    row = client.get("/v1/history", params=before).json()["memories"][-1]
    assert (row["id"], row["rejected"]) == (old.id, [])
    memory.delete(newest.id)
    assert known(client, old)["rejected"] == []


def test_a_page_asks_the_ledger_as_often_as_one_memory(
    client: TestClient, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = memory.store.ledger
    assert ledger is not None
    calls: list[str] = []

    def counted(name: str, method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return method(*args, **options)

        return call

    for name in ("verdicts", "pins", "judged"):
        monkeypatch.setattr(ledger, name, counted(name, getattr(ledger, name)))
    chunks = remember(memory, *(f"My pet {number} is a dog." for number in range(30)))
    for chunk in chunks[:-1]:
        memory.reject(chunk.id, chunks[-1].id)
    calls.clear()
    client.get(f"/v1/memories/{chunks[0].id}")
    once = sorted(calls)
    calls.clear()
    rows = client.get("/v1/history").json()["memories"]
    assert [row["rejected"] for row in rows] == [[]] + [[chunks[-1].id]] * 29
    assert sorted(calls) == once


def test_what_a_person_confirms_goes_and_the_reply_says_who_said_so(
    client: TestClient, memory: Memory
) -> None:
    old, new = remember(memory, "I never eat fish.", "We had the sea bass.")
    assert kept(client, "What do I eat?") == {old.text, new.text}
    say(client, "confirm", old, new, reason="She eats fish now.")
    found = search(client, "What do I eat?")
    assert [item["memory"]["id"] for item in found["kept"]] == [new.id]
    (shadow,) = found["shadows"]
    assert shadow["conflict"] == {
        "older": old.id, "newer": new.id, "score": 1.0, "oracle": "user", "by": "person",
        "reason": "She eats fish now.",
    }  # fmt: skip
    oldest = client.get("/v1/history").json()["memories"][-1]
    assert oldest["shadowed_by"]["by"] == "person"
    assert oldest["shadowed_by"]["reason"] == "She eats fish now."


@pytest.mark.parametrize(
    "change",
    [
        {"word": "maybe"},
        {"word": None},
        {"older": ""},
        {"older": "x" * 101},
        {"newer": 7},
        {"by": ""},
        {"by": " "},
        {"by": "a\x00b"},
        {"reason": "x" * 1001},
        {"reason": "a\x00b"},
        {"score": 1},
        {"userid": "ana"},
    ],
)
def test_a_word_that_cannot_be_used_is_refused(
    client: TestClient, memory: Memory, change: dict[str, Any]
) -> None:
    old, new = remember(memory, "I live in Porto.", "I live in Lisbon.")
    body = {"older": old.id, "newer": new.id, "word": "confirm", **change}
    assert client.post("/v1/verdicts", json=body).status_code == 422


def test_a_word_needs_two_memories_that_exist(client: TestClient, memory: Memory) -> None:
    (chunk,) = remember(memory, "I live in Porto.")
    for older, newer, status in (
        (chunk.id, "nothing", 404), ("nothing", chunk.id, 404), (chunk.id, chunk.id, 422)
    ):  # fmt: skip
        body = {"older": older, "newer": newer, "word": "confirm"}
        assert client.post("/v1/verdicts", json=body).status_code == status


# What still stands


def texts(page: Any) -> list[str]:
    return [claim["text"] for claim in page["claims"]]


def test_what_still_stands_is_listed_without_a_question(client: TestClient, memory: Memory) -> None:
    old, new, _ = remember(
        memory, "I live in Porto. My cat is called Tom.", "I live in Lisbon.", "Is it raining?"
    )
    assert client.get("/v1/current").json() == {"claims": [], "next": None, "pending": 3}
    memory.judge()
    page = client.get("/v1/current", params={"user_id": "ana"}).json()
    assert page == {
        "claims": [
            {"text": "I live in Lisbon.", "at": day(1).isoformat(), "speaker": "user",
             "memory": new.id, "span": [0, 17]},
            {"text": "My cat is called Tom.", "at": day(0).isoformat(), "speaker": "user",
             "memory": old.id, "span": [17, 38]},
        ],
        "next": None,
        "pending": 0,
    }  # fmt: skip
    then = client.get("/v1/current", params={"as_of": day(0.5).isoformat()}).json()
    assert texts(then) == ["My cat is called Tom.", "I live in Porto."]
    assert client.get("/v1/current", params={"user_id": "bob"}).json()["claims"] == []


@pytest.fixture
def pets(memory: Memory) -> list[Chunk]:
    """Three memories of two claims each."""
    chunks = remember(
        memory, *(f"My pet {n} is a dog. My job {n} is quite hard." for n in range(3))
    )
    memory.judge()
    return chunks


def test_pages_of_claims_follow_each_other(client: TestClient, pets: list[Chunk]) -> None:
    whole = texts(client.get("/v1/current").json())
    assert len(whole) == 6
    for limit in (1, 2, 4, 5, 6):
        page = client.get("/v1/current", params={"limit": limit}).json()
        seen = texts(page)
        while page["next"] is not None:
            params = {"limit": limit, "cursor": page["next"]}
            page = client.get("/v1/current", params=params).json()
            seen += texts(page)
        assert seen == whole


@pytest.mark.parametrize("erased", [0, 1])
def test_a_cursor_between_claims_outlives_one_of_its_memories(
    client: TestClient, memory: Memory, pets: list[Chunk], erased: int
) -> None:
    whole = client.get("/v1/current").json()["claims"]
    page = client.get("/v1/current", params={"limit": 2}).json()
    neighbours = [whole[1]["memory"], whole[2]["memory"]]
    memory.delete(neighbours[erased])
    rest = client.get("/v1/current", params={"cursor": page["next"]}).json()
    expected = [claim for claim in whole[2:] if claim["memory"] != neighbours[erased]]
    assert rest["claims"] == expected
    memory.delete(neighbours[1 - erased])
    gone = client.get("/v1/current", params={"cursor": page["next"]})
    assert gone.status_code == 422
    assert "start again" in gone.json()["detail"]


def test_a_forged_cursor_between_claims_is_refused(client: TestClient, pets: list[Chunk]) -> None:
    one, two = pets[0].id, pets[1].id
    cursor_of_memories = client.get("/v1/memories", params={"limit": 1}).json()["next"]
    forged = [
        [one, two],
        [one, 0, 5, two, 0],
        [one, -1, 5, two, 0, 5],
        [one, 5, 0, two, 0, 5],
        [one, 0, 10**30, two, 0, 5],
        [one, 0, 1.5, two, 0, 5],
        {"one": 1},
    ]
    cursors = [base64.urlsafe_b64encode(json.dumps(f).encode()).decode() for f in forged]
    for cursor in (*(c.rstrip("=") for c in cursors), cursor_of_memories, "e30", "x"):
        assert client.get("/v1/current", params={"cursor": cursor}).status_code == 422


def test_a_page_of_claims_ends_early_when_it_is_too_large(memory: Memory) -> None:
    long = "is a very good dog " * 20
    remember(memory, *(f"My pet {n} {long}." for n in range(20)))
    memory.judge()
    app = app_over(memory, limits=Limits(rate_per_s=0, reply_bytes=4 * KIB))
    with TestClient(app, base_url="http://localhost") as client:
        seen: list[str] = []
        params: dict[str, Any] = {"limit": 1000}
        pages = 0
        while True:
            reply = client.get("/v1/current", params=params)
            assert len(reply.content) <= 4 * KIB
            seen += texts(reply.json())
            pages += 1
            if reply.json()["next"] is None:
                break
            params["cursor"] = reply.json()["next"]
    assert seen == [f"My pet {n} {long}." for n in reversed(range(20))]
    assert pages > 2


def test_what_waits_is_counted_so_far_and_no_further(client: TestClient, memory: Memory) -> None:
    memory.add(["I live in Porto."] * (MOST_COUNTED + 5), user_id="ana")
    memory.add(["I live in Oslo."] * 3, user_id="bob")
    assert client.get("/v1/current").json()["pending"] == MOST_COUNTED
    assert client.get("/v1/current", params={"user_id": "bob"}).json()["pending"] == 3


# Tenants


class Two:
    """Ana's key, Bob's memories."""

    def __init__(self, client: TestClient, memory: Memory, keys: KeyStore) -> None:
        self.client, self.memory, self.keys = client, memory, keys
        self.mine = remember(memory, "I live in Porto.", "I live in Lisbon.")
        self.theirs = remember(memory, "My safe is green.", "My safe is blue.", user_id="bob")
        self.key = bearer(keys, "ana", scope=Scope(user_id="ana"))

    def post(self, path: str, body: Any = None, *, key: dict[str, str] | None = None) -> Any:
        return self.client.post(path, json=body, headers=key or self.key)

    def say(self, word: str, older: Chunk, newer: Chunk, **options: Any) -> Any:
        body = {"older": older.id, "newer": newer.id, "word": word}
        return self.post("/v1/verdicts", body, **options)

    def untrusted(self) -> dict[str, str]:
        return bearer(self.keys, "bot", scope=Scope(user_id="ana"), untrusted=True)


@pytest.fixture
def two(guarded: TestClient, memory: Memory, keys: KeyStore) -> Two:
    return Two(guarded, memory, keys)


def test_a_bound_key_speaks_about_memories_of_its_scope_only(two: Two) -> None:
    (mine, _), (theirs, newer) = two.mine, two.theirs
    for word in ("confirm", "reject", "undo"):
        for pair in ((theirs, newer), (mine, theirs), (theirs, mine)):
            refused = two.say(word, *pair)
            assert refused.status_code == 404
            assert "safe" not in refused.text
    assert two.post(f"/v1/memories/{theirs.id}/pin").status_code == 404
    ledger = two.memory.store.ledger
    assert ledger is not None
    assert ledger.pins([theirs.id]) == {}
    assert [v for v in ledger.verdicts([mine.id, theirs.id]) if v.by == "person"] == []
    assert two.say("confirm", *two.mine).status_code == 201
    assert two.post(f"/v1/memories/{mine.id}/pin").status_code == 204


def test_a_word_that_names_somebody_else_s_memory_does_not_show_it(two: Two) -> None:
    mine, _ = two.mine
    _, theirs = two.theirs
    assert two.say("reject", mine, theirs, key=bearer(two.keys, "admin")).status_code == 201
    assert known(two.client, mine, headers=bearer(two.keys, "all"))["rejected"] == [theirs.id]
    assert known(two.client, mine, headers=two.key)["rejected"] == []


def test_naming_another_scope_is_forbidden_here_too(two: Two) -> None:
    theirs, newer = two.theirs
    body = {"older": theirs.id, "newer": newer.id, "word": "confirm", "user_id": "bob"}
    assert two.post("/v1/verdicts", body).status_code == 403
    path = f"/v1/memories/{theirs.id}/pin?user_id=bob"
    assert two.post(path).status_code == 403
    assert two.client.delete(path, headers=two.key).status_code == 403
    assert two.client.get("/v1/current?user_id=bob", headers=two.key).status_code == 403


def test_a_bound_key_learns_nothing_of_how_much_others_have_waiting(two: Two) -> None:
    def pending() -> int:
        found: int = two.client.get("/v1/current", headers=two.key).json()["pending"]
        return found

    assert pending() == 2
    two.memory.add(["I like tea."] * 7, user_id="bob")
    assert pending() == 2
    two.memory.judge()
    two.memory.add(["I like tea."] * 7, user_id="bob")
    assert pending() == 0


def test_a_cursor_of_somebody_else_s_claims_leads_nowhere(two: Two) -> None:
    two.memory.judge()
    admin = bearer(two.keys, "admin")
    two.memory.reject(two.theirs[0].id, two.theirs[1].id)
    params: dict[str, Any] = {"user_id": "bob", "limit": 1}
    theirs = two.client.get("/v1/current", params=params, headers=admin).json()["next"]
    assert theirs is not None
    refused = two.client.get("/v1/current", params={"cursor": theirs}, headers=two.key)
    assert refused.status_code == 422


def test_an_untrusted_key_speaks_only_about_what_is_untrusted(two: Two) -> None:
    bot = two.untrusted()
    trusted, _ = two.mine
    lies = remember(two.memory, "I live in Rome.", "I live in Bonn.", trust=0)
    for word in ("confirm", "reject", "undo"):
        for pair in ((trusted, lies[0]), (lies[0], trusted), tuple(two.mine)):
            refused = two.say(word, *pair, key=bot)
            assert refused.status_code == 403
            assert "trust 1" in refused.json()["detail"]
        assert two.say(word, *lies, key=bot).status_code == 201
    # Whether a memory of another scope is trusted is nobody's business.
    assert two.say("confirm", two.theirs[0], lies[0], key=bot).status_code == 404


def test_an_untrusted_key_pins_nothing(two: Two) -> None:
    """A pinned lie would outlive the truth that a trusted source tells later."""
    bot = two.untrusted()
    (lie,) = two.memory.add("I live in Rome.", user_id="ana", trust=0, at=day(5))
    two.memory.add("I live in Bonn.", user_id="ana", at=day(6))
    assert two.post(f"/v1/memories/{lie.id}/pin", key=bot).status_code == 403
    assert two.client.delete(f"/v1/memories/{lie.id}/pin", headers=bot).status_code == 403
    found = two.post("/v1/search", {"query": "Where do I live?"}).json()
    assert lie.text not in {item["memory"]["text"] for item in found["kept"]}


def test_a_word_is_the_key_s_own_unless_it_says_otherwise(two: Two) -> None:
    assert two.say("confirm", *two.mine).json()["oracle"] == "ana"
