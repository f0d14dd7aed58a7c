"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gcmem import Memory
from gcmem.testing import HashEncoder


def gcmem(*arguments: str, path: Path | None = None, code: int = 0, **env: str) -> str:
    """Runs the command and returns what it printed; errors are printed on stderr."""
    located = [*arguments, "--path", str(path)] if path else list(arguments)
    done = subprocess.run(
        [sys.executable, "-m", "gcmem", *located],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "120", **env},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "m.db"
    session = path.with_name("session.jsonl")
    session.write_text(
        '{"role": "user", "content": "I live in Porto.", "timestamp": "2026-01-01T00:00:00Z"}\n'
        '{"role": "user", "content": "I no longer live in Porto, I live in Lyon now.",'
        ' "timestamp": "2026-02-01T00:00:00Z", "metadata": {"kind": "move"}}\n'
    )
    added = json.loads(gcmem("add", "--file", str(session), "--user", "ana", "--json", path=path))
    assert [chunk["text"][:7] for chunk in added] == ["I live ", "I no lo"]
    return path


def test_search_shows_what_is_true_and_what_was_removed_by_which_chunk(store: Path) -> None:
    shown = gcmem("search", "Where do I live?", "--user", "ana", path=store)
    assert "Still true" in shown
    assert "Outdated" in shown
    found = json.loads(gcmem("search", "Where do I live?", "--user", "ana", "--json", path=store))
    assert [item["chunk"]["text"][:4] for item in found["kept"]] == ["I no"]
    assert found["shadows"][0]["candidate"]["chunk"]["text"] == "I live in Porto."
    assert found["shadows"][0]["witness"]["chunk"]["metadata"] == {"kind": "move"}


def test_modes_mark_what_is_contradicted(store: Path) -> None:
    shown = gcmem("search", "Where do I live?", "--mode", "annotate", path=store)
    assert "contradicted by" in shown


def test_search_as_of_another_day(store: Path) -> None:
    found = json.loads(
        gcmem("search", "Where do I live?", "--as-of", "2026-01-15T00:00Z", "--json", path=store)
    )
    assert [item["chunk"]["text"] for item in found["kept"]] == ["I live in Porto."]


def test_ask_compares_paths(store: Path) -> None:
    answers = json.loads(
        gcmem(
            "ask", "Where do I live?", "--option", "Porto", "--option", "Lyon", "--by", "all",
            "--mode", "forced-choice", "--json", path=store,
        )
    )  # fmt: skip
    assert [answer["path"] for answer in answers] == ["standard", "timestamp", "gcmem"]
    assert "Lyon" in gcmem("ask", "Where do I live?", path=store)


def test_history_filters_and_forget(store: Path) -> None:
    added: list[Any] = json.loads(
        gcmem("add", "soon gone", "--user", "bob", "--metadata", "n=3", "--json", path=store)
    )
    rows = json.loads(gcmem("history", "--filter", "n=3", "--json", path=store))
    assert [row["id"] for row in rows] == [added[0]["id"]]
    assert "I live in Porto." in gcmem("history", "--user", "ana", path=store)
    assert gcmem("forget", "--user", "bob", path=store, code=1)  # asks, and nobody answers
    erased = json.loads(gcmem("forget", added[0]["id"], "--json", path=store))
    assert erased == {"forgotten": 1, "erasing": None}
    assert added[0]["id"] in gcmem("forget", added[0]["id"], path=store, code=1)
    gcmem("forget", "--user", "bob", "--yes", path=store, code=1)  # nothing is left of bob


def test_the_store_can_come_from_the_environment(store: Path) -> None:
    assert "I live in Porto." in gcmem("history", GCMEM_PATH=str(store))


def test_doctor_finds_a_store_of_another_encoder_and_reindex_mends_it(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add("I live in Lyon.")
    report = subprocess.run(
        [sys.executable, "-m", "gcmem", "doctor", "--json", "--path", str(path)],
        capture_output=True,
        text=True,
    )
    assert report.returncode == 1
    assert "gcmem reindex" in json.loads(report.stdout)["problems"][0]
    assert "gcmem reindex" in gcmem("search", "x", path=path, code=1)
    assert json.loads(gcmem("reindex", "--json", path=path))["chunks"] == 1
    shown = gcmem("doctor", path=path)
    assert "All well." in shown
    assert "marginal: it may remove" in shown
    assert "I live in Lyon." in gcmem("search", "Where?", path=path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "x", "-k", "0"), "k=0"),
        (("search", "x", "--mode", "hide"), "drop, demote, annotate"),
        (("search", "x", "--as-of", "yesterday"), "2026-03-01T09:00:00+00:00"),
        (("search", "x", "--filter", "oops"), "KEY=VALUE"),
        (("ask", "x", "--by", "magic"), "standard"),
        (("add",), "give a text"),
        (("add", "--file", "missing.jsonl"), "can't read"),
        (("add", "x", "--file", __file__, "--tz", "Mars"), "no such timezone"),
        (("forget",), "say what to forget"),
    ],
)
def test_mistakes_end_with_one_helpful_line(
    store: Path, arguments: tuple[str, ...], message: str
) -> None:
    shown = gcmem(*arguments, path=store, code=2)
    assert message in shown
    assert "Traceback" not in shown
    as_json = json.loads(gcmem(*arguments, "--json", path=store, code=2))
    assert message in as_json["message"]


def test_qualify_measures_an_oracle_and_says_what_it_may_do(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"question": None, "older": f"{name} listens on port 8080.",
         "newer": f"{name} listens on port 9090 now.", "conflict": True, "category": "update"}
        for name in ("Staging", "The API", "The database", "Redis")
    ] * 13  # fmt: skip
    rows += [{"older": "Tea is ready.", "newer": "It rains.", "conflict": False}] * 50
    file.write_text("\n".join(map(json.dumps, rows)))
    home = str(tmp_path)
    found = json.loads(gcmem("qualify", "--pairs", str(file), "--json", HOME=home))
    assert found["oracle"].startswith("gcmem-kappa@")
    assert {"precision", "recall", "f1", "by_category", "latency_ms_per_pair"} <= set(found)
    assert found["recall"] == 1.0
    assert found["fitness"] == "optimal"
    assert "optimal" in gcmem("qualify", "--pairs", str(file), HOME=home)
    assert found["oracle"] in (tmp_path / ".gcmem" / "qualified.json").read_text()
    assert "Not recorded" in gcmem("qualify", "--pairs", str(file), "--limit", "3", HOME=home)
    assert "write local" in gcmem("qualify", "--oracle", "magic", code=2)
    assert "not both" in gcmem("qualify", "--pairs", "a", "--instances", "b", code=2)


def test_reading_from_where_there_is_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    for command in (("search", "x"), ("ask", "x"), ("history",), ("reindex",)):
        assert "gcmem add" in gcmem(*command, path=tmp_path / "none.db", code=2)
    assert not (tmp_path / "none.db").exists()


def test_a_bad_line_late_in_a_file_stores_nothing(tmp_path: Path) -> None:
    file, path = tmp_path / "s.jsonl", tmp_path / "m.db"
    lines = [json.dumps({"text": f"fact {n}", "at": "2026-01-01T00:00:00Z"}) for n in range(300)]
    lines[290] = json.dumps({"text": "later", "at": "2999-01-01T00:00:00Z"})
    file.write_text("\n".join(lines))
    assert "2999" in gcmem("add", "--file", str(file), path=path, code=2)
    assert not path.exists()


def test_doctor_reports_a_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("just some notes, and long enough to be read as a header of a database" * 9)
    gcmem("doctor", path=path, code=1)
    assert "not a gcmem store" in gcmem("history", path=path, code=1)


def test_wrong_usage_is_exit_code_2() -> None:
    assert "Usage" in gcmem("search", code=2)


def test_the_demo_shows_the_stale_fact_going_with_its_witness() -> None:
    told = json.loads(gcmem("demo", "--json"))
    answers: dict[str, Any] = {}
    shadowed: set[str] = set()
    for question in told["questions"]:
        answers = {answer["path"]: answer for answer in question["answers"]}
        shadows = answers["gcmem"]["resolution"]["shadows"]
        shadowed |= {shadow["candidate"]["chunk"]["text"] for shadow in shadows}
        assert answers["gcmem"]["choice"] == question["truth"]
        assert (answers["standard"]["choice"] == question["truth"]) is not bool(shadows)
    still_true = ("allergic", "Rui", "Lyon", "9090", "Mokka")
    assert not [text for text in shadowed if any(word in text for word in still_true)]
    port = next(q for q in told["questions"] if "port" in q["question"])
    answers = {answer["path"]: answer for answer in port["answers"]}
    assert any(
        "8080" in shadow["candidate"]["chunk"]["text"]
        and "9090" in shadow["witness"]["chunk"]["text"]
        for shadow in answers["gcmem"]["resolution"]["shadows"]
    )
    assert told["earlier"]["text"] == "Porto"
    assert "Outdated" in gcmem("demo")
