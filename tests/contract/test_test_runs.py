"""What a test run owes to the machine it runs on, and to the person who reads its output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLEAN = "def test_it(tmp_path):\n    (tmp_path / 'file').write_text('x')\n"
LEAVES_ONE = "import tempfile\n\ndef test_it():\n    tempfile.mkdtemp(prefix='forgotten-')\n"
BY_A_CHILD = (
    "import subprocess, sys\n\ndef test_it():\n"
    "    code = \"import tempfile; tempfile.mkdtemp(prefix='forgotten-')\"\n"
    "    subprocess.run([sys.executable, '-c', code], check=True)\n"
)
FAILS = "def test_it(tmp_path):\n    (tmp_path / 'file').write_text('x')\n    assert False\n"
BROWSES = "from tests.serve.web.conftest import browser\n\ndef test_it(browser):\n    pass\n"
SKIPS = "import pytest\n\ndef test_it():\n    pytest.skip('the moon is full')\n"


def run_tests(source: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a test file with the project's settings, its temporary files under `folder`."""
    test = folder / "test_it.py"
    test.write_text(source)
    temporary = folder / "tmp"
    temporary.mkdir()
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"),
         "-p", "tests.temporary_files", "--rootdir", str(folder), str(test)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary), **environment},
    )  # fmt: skip


def test_a_run_leaves_no_temporary_files(tmp_path: Path) -> None:
    done = run_tests(CLEAN, tmp_path)
    assert done.returncode == 0, done.stdout
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("source", [LEAVES_ONE, BY_A_CHILD], ids=["itself", "a child"])
def test_a_run_that_leaves_temporary_files_fails_and_names_them(
    source: str, tmp_path: Path
) -> None:
    done = run_tests(source, tmp_path)
    assert done.returncode == 1
    assert "temporary files left behind" in done.stdout
    assert "forgotten-" in done.stdout


def test_a_failed_run_keeps_its_files_and_says_where(tmp_path: Path) -> None:
    done = run_tests(FAILS, tmp_path)
    assert done.returncode == 1
    (kept,) = (tmp_path / "tmp").iterdir()
    assert f"kept in {kept}" in done.stdout
    assert list(kept.rglob("file"))


def test_a_run_says_why_tests_were_skipped(tmp_path: Path) -> None:
    done = run_tests(SKIPS, tmp_path)
    assert done.returncode == 0
    assert "the moon is full" in done.stdout


def test_without_chromium_the_browser_tests_are_skipped_with_the_reason(tmp_path: Path) -> None:
    done = run_tests(BROWSES, tmp_path, PATH="", GCMEM_REQUIRE_BROWSER="")
    assert done.returncode == 0, done.stdout
    assert "no Chromium on this machine" in done.stdout


def test_where_a_browser_is_required_its_absence_is_a_failure(tmp_path: Path) -> None:
    done = run_tests(BROWSES, tmp_path, PATH="", GCMEM_REQUIRE_BROWSER="1")
    assert done.returncode == 1
    assert "no Chromium on this machine" in done.stdout


def make_commands(folder: Path, **scripts: str) -> Path:
    """Makes a folder of commands, so that a script finds these and nothing else."""
    commands = folder / "bin"
    commands.mkdir()
    for name, body in scripts.items():
        command = commands / name.replace("_", "-")
        command.write_text(f"#!/bin/sh\n{body}\n")
        command.chmod(0o755)
    for name in ("dirname", "chmod"):
        found = shutil.which(name)
        assert found is not None
        (commands / name).symlink_to(found)
    return commands


SAY_BROWSER = 'echo "$1: GCMEM_REQUIRE_BROWSER=${GCMEM_REQUIRE_BROWSER-unset}"'


@pytest.mark.parametrize(
    ("scripts", "said"),
    [
        ({"chromium": "exit 0"}, "test: GCMEM_REQUIRE_BROWSER=1"),
        (
            {"apt_get": 'here=${0%/*}; : > "$here/chromium"; chmod +x "$here/chromium"'},
            "test: GCMEM_REQUIRE_BROWSER=1",
        ),
        ({"apt_get": "echo 'E: no network' >&2; exit 100"}, "E: no network"),
    ],
    ids=["installed", "can be installed", "can not"],
)
def test_ci_requires_the_browser_tests_wherever_chromium_can_be_had(
    scripts: dict[str, str], said: str, tmp_path: Path
) -> None:
    commands = make_commands(tmp_path, make=SAY_BROWSER, **scripts)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, str(ROOT / ".ci" / "run")],
        capture_output=True,
        text=True,
        env={"PATH": str(commands), "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr
    if "no network" in said:
        assert "test: GCMEM_REQUIRE_BROWSER=unset" in done.stdout
        assert "the browser tests are skipped" in done.stdout + done.stderr
