"""What the documentation tells people to type works as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from tests.contract.documented import (
    MAKES,
    PAGES,
    READS,
    ROOT,
    Block,
    blocks,
    inline_commands,
    parse,
)  # fmt: skip

BLOCKS = blocks()
# Commands that end by themselves, and need neither a network nor minutes.
QUICK = {
    "add", "search", "ask", "history", "doctor", "export", "import", "migrate", "link", "forget",
    "keys create", "keys list", "keys revoke",
}  # fmt: skip
RUNNABLE = [
    block
    for block in BLOCKS
    if block.lines()
    and all(words[0] == "gcmem" for words in block.lines())
    and all(parse(arguments).name in QUICK for arguments in block.commands())
]
STARTS_A_SERVER = [block for block in BLOCKS if re.search(r"&$", block.text, re.M)]
INSTALLS = re.compile(r"\bpip install\b([^`\n#;]*)")
EXTRA = re.compile(r"'gcmem\[([\w,-]+)\]'")


def install_lines() -> list[tuple[str, str]]:
    """Returns (file, what is installed) of every `pip install` that people are told to type."""
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    return [
        (file.relative_to(ROOT).as_posix(), " ".join(what.split()))
        for file in (*PAGES, ROOT / "docs" / "cli.md", *sources)
        for what in INSTALLS.findall(re.sub(r"install\s+'", "install '", file.read_text("utf-8")))
    ]


def test_gcmem_is_installed_in_one_way_everywhere() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    found = install_lines()
    assert len(found) > 20
    for file, what in found:
        named = EXTRA.findall(what)
        if "{extra}" not in what:
            assert {e for names in named for e in names.split(",")} <= extras.keys(), (file, what)
        # A clone is installed once, in the README; elsewhere an extra is added to it.
        assert "gcmem" not in re.sub(r"'gcmem\[[^]]+\]'", "", what), (file, what)
        from_a_folder = any(word.strip("'\"").startswith(".") for word in what.split())
        assert not from_a_folder or file == "README.md", (file, what)
    assert ("README.md", ".") in found


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_commands_in_blocks_exist_and_their_files_too(block: Block) -> None:
    made: set[str] = set()
    for arguments in block.commands():
        call = parse(arguments)
        for file in call.files(READS):
            assert file in made or (ROOT / file).exists(), f"nothing makes {file}"
        made |= {*call.files(MAKES), *call.options.get("--path", [])}


def test_commands_within_sentences_exist() -> None:
    found = inline_commands()
    assert len(found) > 20
    for page, arguments in found:
        try:
            parse(arguments, complete=False)
        except AssertionError as error:
            raise AssertionError(f"{page.name}: {error}") from None


def test_make_targets_and_python_files_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in PAGES:
        text = page.read_text("utf-8")
        for target in re.findall(r"(?:`|^)make ([a-z][\w-]*)", text, re.M):
            assert target in targets, f"{page.name}: make {target}"
        for file in re.findall(r"(?:`|^)python3? ([\w/]+\.py)", text, re.M):
            assert (ROOT / file).exists(), f"{page.name}: python {file}"
        for module in re.findall(r"(?:`|^)python3? -m ((?:training|tests|benchmarks)[\w.]+)", text):
            assert (ROOT / f"{module.replace('.', '/')}.py").exists(), f"{page.name}: {module}"


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A folder in which `gcmem` is this one, and the examples lie as in a clone."""
    commands = tmp_path / "bin"
    commands.mkdir()
    add_command(commands, "gcmem", f'exec "{sys.executable}" -m gcmem "$@"')
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def add_command(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def run_block(text: str, folder: Path) -> tuple[int, str]:
    """Runs a block, ends whatever it left running, and returns its exit code and its output."""
    environment = {
        **os.environ,
        "HOME": str(folder),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
    }
    log = folder / "log"
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", text],
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        try:
            code = shell.wait(timeout=300)
        finally:
            left = is_running(shell.pid)
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert not left, f"something is still running:\n{log.read_text()}"
    return code, log.read_text()


def is_running(group: int) -> bool:
    """Tells whether a process of the group is still there after the time that a stop may take."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


def test_some_blocks_can_be_run() -> None:
    assert {block.page.name for block in RUNNABLE} >= {"README.md", "moving.md", "serve.md"}


@pytest.mark.parametrize("block", RUNNABLE, ids=str)
def test_a_block_runs_as_it_stands(block: Block, shell: Path) -> None:
    code, said = run_block(block.text, shell)
    assert code == 0, said


def test_the_readmes_commands_answer_with_what_is_still_true(shell: Path) -> None:
    (block,) = [block for block in RUNNABLE if block.page.name == "README.md"]
    _, said = run_block(block.text, shell)
    assert re.search(r"^Lyon\b", said, re.M), said


@pytest.mark.parametrize("block", STARTS_A_SERVER, ids=str)
def test_a_block_stops_the_server_that_it_starts(block: Block, shell: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    asked = shell / "asked"
    reach = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5).close()"
    # Only what would come from the network is replaced; it looks whether the server answers.
    add_command(shell / "bin", "curl", f'exec "{sys.executable}" -c "{reach}" 2>/dev/null')
    add_command(shell / "bin", "npx", f'"{sys.executable}" -c "{reach}" && echo yes >> "{asked}"')
    text = block.text.replace("--transport http", f"--transport http --port {port}")
    code, said = run_block(text.replace("8765", str(port)), shell)
    assert code == 0, said
    assert asked.read_text().startswith("yes")
