"""Commands that name a language model, against real HTTP endpoints on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from gcmem import Memory
from tests.conftest import day, newer_ends
from tests.processes.conftest import Faulty, chat_reply, url

CONFLICT = {"conflicts": [{"older": 1, "newer": 2, "confidence": 0.9}]}
FOUND = (200, chat_reply(json.dumps(CONFLICT)))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path) as memory:
        memory.add("The key is under the mat.", at=day(1))
        memory.add("The key hangs in the shed.", at=day(2))
    return path


def gcmem(*arguments: str, store: Path, home: Path, code: int = 0) -> tuple[str, str]:
    """Runs the command, and returns what it printed and what it warned of."""
    done = subprocess.run(
        [sys.executable, "-m", "gcmem", *arguments, "--path", str(store)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "HOME": str(home), "OPENAI_API_KEY": "k"},
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_a_search_judged_by_a_named_model_removes_only_if_told_so(
    store: Path, faulty: Faulty, tmp_path: Path
) -> None:
    faulty.script = [FOUND]
    asked = ("search", "Where is the key?", "--oracle", "llm:m", "--base-url", url(faulty))
    shown, warned = gcmem(*asked, "--json", store=store, home=tmp_path)
    found = json.loads(shown)
    assert len(found["kept"]) == 2
    assert [s["candidate"]["chunk"]["text"] for s in found["shadows"]] == [
        "The key is under the mat."
    ]
    assert warned.startswith("gcmem: oracle 'llm:m")
    assert "--unqualified" in warned
    shown, warned = gcmem(*asked, "--unqualified", "--json", store=store, home=tmp_path)
    found = json.loads(shown)
    assert [item["chunk"]["text"] for item in found["kept"]] == ["The key hangs in the shed."]
    assert found["shadows"][0]["conflict"]["oracle"].startswith("llm:m")
    assert not warned


def test_what_a_model_left_unjudged_is_told(store: Path, faulty: Faulty, tmp_path: Path) -> None:
    faulty.script = [(200, chat_reply("no JSON at all"))]
    asked = ("search", "Where is the key?", "--oracle", "llm:m", "--base-url", url(faulty))
    _, warned = gcmem(*asked, "--unqualified", store=store, home=tmp_path)
    assert "could not be read and count as no conflict" in warned


def test_a_model_finds_conflicts_ahead_of_time_that_its_own_searches_follow(
    store: Path, faulty: Faulty, tmp_path: Path
) -> None:
    faulty.script = [FOUND]
    named = ("--oracle", "llm:m", "--base-url", url(faulty))
    shown, warned = gcmem("judge", *named, "--json", store=store, home=tmp_path)
    assert json.loads(shown) == {"judged": 2, "conflicts": 1}
    assert not warned
    with Memory(store) as memory:
        ledger = memory.store.ledger
        assert ledger is not None
        old, new = (chunk.id for chunk in memory.history())
        judge = next(name for name in ledger.judges() if name.startswith("llm:m:listwise@2"))
        assert newer_ends(memory.store, judge, [old]) == {old: [new]}
        assert memory.pending() == 2  # by another judge


def test_what_a_model_left_unjudged_of_any_chunk_is_told_at_the_end(
    store: Path, faulty: Faulty, tmp_path: Path
) -> None:
    nothing = (200, chat_reply(json.dumps({"conflicts": []})))
    with Memory(store) as memory:
        memory.add("The key is in the drawer.", at=day(3))
    garbled = (200, chat_reply("no JSON at all"))
    faulty.script = [garbled, garbled, garbled, nothing]
    named = ("--oracle", "llm:m", "--base-url", url(faulty))
    _, warned = gcmem("judge", *named, store=store, home=tmp_path)
    assert "1 replies or entries could not be read" in warned


def test_a_server_judges_with_the_named_model_and_says_what_it_may_do(
    store: Path, faulty: Faulty, tmp_path: Path
) -> None:
    faulty.script = [FOUND]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--oracle", "llm:m", "--base-url", url(faulty), "--unqualified", "--port", str(port))
    server = subprocess.Popen(
        [sys.executable, "-m", "gcmem", "serve", "--path", str(store), *options],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(tmp_path), "OPENAI_API_KEY": "k"},
    )
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
            for _ in range(100):
                try:
                    if client.get("/readyz").status_code == 200:
                        break
                except httpx2.TransportError:
                    pass
                time.sleep(0.2)
            assert faulty.calls == 0  # starting costs nothing
            told = client.get("/v1/qualify").json()
            assert (told["class"], told["may_remove"]) == (None, True)
            asked = {"query": "Where is the key?"}
            found = client.post("/v1/search", json=asked).json()
            documents = [
                {"id": "a", "text": "The key is under the mat.", "at": "2026-01-01T00:00:00Z"},
                {"id": "b", "text": "The key hangs in the shed.", "at": "2026-01-02T00:00:00Z"},
            ]
            split = client.post("/v1/resolve", json={**asked, "documents": documents}).json()
    finally:
        server.terminate()
        server.wait(timeout=20)
    assert [shadow["conflict"]["oracle"] for shadow in found["shadows"]] == ["llm:m:listwise@2"]
    assert [document["id"] for document in split["kept"]] == ["b"]


def test_an_answer_can_come_from_a_named_model(store: Path, faulty: Faulty, tmp_path: Path) -> None:
    faulty.script = [(200, chat_reply(json.dumps({"answer": "in the shed"})))]
    asked = ("ask", "Where is the key?", "--reader", "llm:m", "--base-url", url(faulty), "--json")
    shown, _ = gcmem(*asked, store=store, home=tmp_path)
    assert json.loads(shown)["text"] == "in the shed"


@pytest.mark.parametrize(
    ("option", "name", "known"),
    [("--oracle", "gpt", "llm-pairwise:MODEL"), ("--reader", "llm:", "local or llm:MODEL")],
)
def test_an_unknown_name_is_answered_with_the_known_ones(
    store: Path, tmp_path: Path, option: str, name: str, known: str
) -> None:
    _, told = gcmem("ask", "Where?", option, name, store=store, home=tmp_path, code=2)
    assert known in told


@pytest.mark.parametrize("command", ["mcp", "serve"])
@pytest.mark.parametrize("name", ["gpt", "nli:nowhere"])
def test_a_mistake_in_the_oracle_makes_no_store(tmp_path: Path, command: str, name: str) -> None:
    gcmem(command, "--oracle", name, store=tmp_path / "new.db", home=tmp_path, code=2)
    assert not (tmp_path / "new.db").exists()
