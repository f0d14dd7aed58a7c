"""Commands that name a language model, against real HTTP endpoints on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcmem import Memory
from tests.conftest import day
from tests.integration.conftest import Faulty, chat_reply, url

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
    assert len(json.loads(shown)["kept"]) == 2
    assert "gcmem qualify" in warned
    shown, warned = gcmem(*asked, "--unqualified", "--json", store=store, home=tmp_path)
    found = json.loads(shown)
    assert [item["chunk"]["text"] for item in found["kept"]] == ["The key hangs in the shed."]
    assert found["shadows"][0]["conflict"]["oracle"].startswith("llm:m")
    assert not warned


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
    _, told = gcmem("ask", "Where?", option, name, store=store, home=tmp_path, code=1)
    assert known in told
