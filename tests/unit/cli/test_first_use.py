"""The command line as a new user meets it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gcmem.cli import app
from gcmem.cli.counting import counted, part
from gcmem.errors import InvalidInputError
from tests.unit.cli.test_commands import gcmem

COMMANDS = (
    "demo", "add", "search", "ask", "history", "current", "forget", "judge", "pin", "unpin",
    "confirm", "reject", "undo", "reindex", "export", "import",
    "migrate", "qualify", "doctor", "serve", "mcp", "keys", "keys create", "keys list",
    "keys revoke", "bench", "bench thresholds",
)  # fmt: skip
ANIMALS = (
    "ants", "bears", "cats", "deer", "eels", "foxes", "goats", "hares", "ibises", "jays", "koalas",
    "lions", "mice", "newts", "owls", "pigs", "quails", "rats", "seals", "tigers", "urchins",
    "voles", "wolves", "yaks", "zebras", "apes", "bats", "cows",
)  # fmt: skip
SYMBOLS = ("κ", "Φ", "mtm", "τ")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 30 messages, one of them outdated."""
    path = tmp_path_factory.mktemp("first") / "m.db"
    file = path.with_name("chat.jsonl")
    texts = ["I live in Porto.", *(f"Once I saw {animal} in the zoo." for animal in ANIMALS)]
    texts.append("I no longer live in Porto, I live in Lyon now.")
    rows = [{"text": t, "at": f"2026-01-{n + 1:02}T00:00:00Z"} for n, t in enumerate(texts)]
    file.write_text("\n".join(map(json.dumps, rows)))
    gcmem("add", "--file", str(file), "--user", "ana", path=path)
    return path


def run(*arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Runs the command and returns everything that it said."""
    return subprocess.run(
        [sys.executable, "-m", "gcmem", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        input=stdin,
        env={**os.environ, "COLUMNS": "80", **env},
    )


def test_numbers_agree_with_their_nouns() -> None:
    assert [counted(n, "chunk") for n in (0, 1, 2)] == ["0 chunks", "1 chunk", "2 chunks"]
    assert counted(12345, "chunk") == "12,345 chunks"
    assert part(3, 12, "chunk") == "3 of 12 chunks"
    assert part(12, 12, "chunk") == "12 chunks"
    assert part(0, 1, "chunk") == "0 of 1 chunk"


def test_one_thing_is_never_many(tmp_path: Path) -> None:
    path, file = tmp_path / "m.db", str(tmp_path / "a.jsonl")
    shown = [
        gcmem("add", "I live in Lyon.", path=path),
        gcmem("history", path=path),
        gcmem("search", "Where do I live?", path=path),
        gcmem("ask", "Where do I live?", path=path),
        gcmem("judge", path=path),
        gcmem("reindex", path=path),
        gcmem("export", file, path=path),
        gcmem("import", file, path=tmp_path / "n.db"),
        gcmem("migrate", str(path), str(tmp_path / "o.db")),
        gcmem("forget", "--user", "nobody", path=path, code=1),
        run("forget", "--filter", "a=1", "--path", str(path)).stdout,
    ]
    for text in shown:
        assert "1 chunks" not in text
        assert "1 turns" not in text
        assert "1 messages" not in text
        assert "1 candidates" not in text


def test_ask_lists_k_lines_and_marks_the_one_that_answered(store: Path) -> None:
    shown = gcmem("ask", "Where do I live?", "-k", "3", path=store)
    assert shown.splitlines()[0] == "I no longer live in Porto, I live in Lyon now."
    rows = [line for line in shown.splitlines() if "2026-" in line and "zoo" in line]
    assert len(rows) <= 2
    marked = [line for line in shown.splitlines() if line.startswith("│ >")]
    assert len(marked) == 1
    assert "Lyon" in marked[0]
    assert "Still true: 3 chunks" in shown
    chosen = gcmem("ask", "Where do I live?", "--option", "Porto", "--option", "Lyon", path=store)
    assert chosen.splitlines()[0] == "Lyon"
    assert [line for line in chosen.splitlines() if line.startswith("│ >") and "Lyon" in line]
    answer = json.loads(gcmem("ask", "Where do I live?", "--json", path=store))
    texts = {c["chunk"]["id"]: c["chunk"]["text"] for c in answer["resolution"]["kept"]}
    assert "Lyon" in texts[answer["source"]]


def test_search_says_how_many_of_what_it_found_it_lists(store: Path) -> None:
    shown = gcmem("search", "Where do I live?", "-k", "2", path=store)
    assert "Still true: 2 of " in shown
    assert "Outdated: 1 chunk" in shown
    assert "Nothing found" in gcmem("search", "Where?", "--user", "nobody", path=store)


def test_search_takes_options_as_ask_does(store: Path) -> None:
    found = json.loads(
        gcmem("search", "Where?", "--option", "Porto", "--option", "Lyon", "--json", path=store)
    )
    assert found["candidates"]["options"] == ["Porto", "Lyon"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_words_and_no_symbols_and_fits_80_columns(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    assert not [symbol for symbol in SYMBOLS if symbol in shown.stdout]
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_the_list_of_commands_cuts_no_sentence_short() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    listed = shown[shown.index("Commands:") : shown.index("Begin with")]
    assert not [line for line in listed.splitlines() if line.endswith("...")]


def test_output_has_words_and_no_symbols(store: Path) -> None:
    for command in (
        ("search", "Where do I live?"),
        ("search", "Where do I live?", "--mode", "annotate"),
        ("ask", "Where do I live?"),
        ("history",),
        ("doctor",),
        ("judge",),
    ):
        shown = gcmem(*command, path=store)
        assert not [symbol for symbol in (*SYMBOLS, "stm", "edge ") if symbol in shown], command


def test_a_time_without_a_timezone_names_the_option_that_gives_one(
    store: Path, tmp_path: Path
) -> None:
    naive = "2026-01-15T09:00"
    for command in (
        ("search", "x", "--as-of", naive),
        ("ask", "x", "--known-at", naive),
        ("history", "--as-of", naive),
        ("add", "x", "--at", naive),
    ):
        assert "--tz" in gcmem(*command, path=store, code=2)
    rows = json.loads(
        gcmem("history", "--as-of", "2026-01-01T01:00", "--tz", "Europe/Rome", "--json", path=store)
    )
    assert [row["text"] for row in rows] == ["I live in Porto."]
    assert not json.loads(
        gcmem("history", "--as-of", "2026-01-01T00:59", "--tz", "Europe/Rome", "--json", path=store)
    )
    new = tmp_path / "n.db"
    added = json.loads(
        gcmem("add", "x", "--at", "2026-01-01T01:00", "--tz", "Europe/Rome", "--json", path=new)
    )
    assert added[0]["at"] == "2026-01-01T00:00:00+00:00"
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps({"text": "x", "at": naive}))
    assert "--tz" in gcmem("add", "--file", str(file), path=new, code=2)
    assert "--tz" in gcmem("import", str(file), path=new, code=2)


CHATS = {
    "lines.jsonl": '{"role": "user", "content": "hi", "timestamp": "2026-01-01T00:00:00Z"}\n' * 2,
    "list.json": '[{"role": "user", "content": "hi"}]',
    "pretty.json": json.dumps({"messages": [{"role": "user", "content": "hi"}]}, indent=2),
    "text.jsonl": '{"text": "hi", "timestamp": 1767225600}',
    "notes.txt": "I live in Lyon.\nI have a cat.\n",
}


@pytest.mark.parametrize("name", CHATS)
def test_import_of_a_chat_points_to_add_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(CHATS[name])
    path = tmp_path / "m.db"
    assert f"gcmem add --file {file}" in gcmem("import", str(file), path=path, code=2)
    assert not path.exists()
    gcmem("add", "--file", str(file), path=path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_add_of_an_export_points_to_import(name: str, store: Path, tmp_path: Path) -> None:
    file = str(tmp_path / name)
    gcmem("export", file, path=store)
    shown = gcmem("add", "--file", file, path=tmp_path / "m.db", code=2)
    assert f"gcmem import {file}" in shown
    assert not (tmp_path / "m.db").exists()


def test_forget_says_how_many_before_it_asks(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    at = ("--path", str(path))
    gcmem("add", "one", "two", "three", "--user", "ana", path=path)
    refused = run("forget", "--user", "ana", *at, stdin="n\n")
    assert "Erase 3 chunks permanently?" in refused.stderr
    assert refused.returncode == 1
    silent = run("forget", "--user", "ana", *at)
    assert "--yes" in silent.stderr
    assert silent.returncode == 1
    assert len(json.loads(gcmem("history", "--json", path=path))) == 3
    nobody = run("forget", "--user", "anna", *at)
    assert "nothing matches" in nobody.stderr
    assert "Erase" not in nobody.stderr
    assert nobody.returncode == 1
    agreed = run("forget", "--user", "ana", "--yes", *at)
    assert "erasing 3 chunks" in agreed.stderr
    assert "Erased 3 chunks." in agreed.stdout
    assert agreed.returncode == 0


def test_a_missing_folder_is_named_and_not_made(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "no" / "such"
    path = folder / "m.db"
    for command in (
        ("add", "hello"),
        ("serve", "--port", "1"),
        ("mcp",),
        ("keys", "create", "ana"),
        ("demo",),
    ):
        shown = gcmem(*command, path=path, code=2)
        assert f"mkdir -p {folder}" in shown, command
    for command in (("migrate", str(store), str(path)), ("export", str(folder / "a.jsonl"))):
        assert f"mkdir -p {folder}" in gcmem(*command, code=2, GCMEM_PATH=str(store)), command
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "tea", "at": "2026-01-01T00:00:00Z"}')
    assert f"mkdir -p {folder}" in gcmem("import", str(file), path=path, code=2)
    assert not (tmp_path / "no").exists()


def test_the_default_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    gcmem("add", "hello", HOME=str(tmp_path))
    folder = tmp_path / ".gcmem"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "memory.db").exists()


def test_a_pipe_that_ends_early_is_no_error(store: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m gcmem history --json --path {store} | head -c 10",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""


def test_keys_say_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    assert "gcmem keys create" in gcmem("keys", "list", path=path)
    assert list(tmp_path.iterdir()) == []  # looking makes nothing
    assert "every user" in gcmem("keys", "create", "all", path=path)


BAD = (
    ("search", "x", "-k", "0"),
    ("search", "x", "--filter", "oops"),
    ("search", "x", "--tz", "Mars", "--as-of", "2026-01-01"),
    ("search", " "),
    ("ask", "x", "--by", "magic"),
    ("ask", "x", "--oracle", "magic"),
    ("add", "--file", "{tmp}"),
    ("add", "--file", "{tmp}/none.json", "--tz", ""),
    ("add", "--file", "{tmp}/none.json"),
    ("import", "{tmp}"),
    ("export", "{tmp}"),
    ("qualify", "--pairs", "{tmp}/none.jsonl"),
    ("forget",),
    ("forget", "--user", ""),
    ("history", "--user", " "),
    ("keys", "create", ""),
    ("judge", "--limit", "0"),
)


ODD_FILES = {
    "deep.json": "[" * 100_000,
    "deep_but_whole.json": "[" * 900 + "]" * 900,
    "deep.jsonl": '{"text": "a", "metadata": ' + '{"a": ' * 3_000 + "1" + "}" * 3_001,
    "number.json": "5",
    "empty.json": "",
    "half.json": '[{"text": "a"}',
    "nodes.json": '[{"mapping": {"a": 5}, "current_node": "a"}]',
}


@pytest.mark.parametrize("command", ["add --file", "import", "qualify --pairs"])
@pytest.mark.parametrize("name", ODD_FILES)
def test_an_odd_file_is_named_in_one_line(name: str, command: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(ODD_FILES[name])
    words = [*command.split(), str(file)]
    with pytest.raises(InvalidInputError) as refused:
        CliRunner().invoke(
            app, words, catch_exceptions=False, env={"GCMEM_PATH": str(tmp_path / "m.db")}
        )
    shown = str(refused.value)
    assert name in shown or command.startswith("qualify")
    assert "\n" not in shown


@pytest.mark.parametrize("command", BAD, ids=" ".join)
def test_wrong_input_is_exit_code_2_and_a_message(
    command: tuple[str, ...], store: Path, tmp_path: Path
) -> None:
    words = [word.format(tmp=tmp_path) for word in command]
    done = run(*words, GCMEM_PATH=str(store))
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    assert done.stdout == ""
