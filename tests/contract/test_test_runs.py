"""What a test run owes to the machine it runs on, and to the person who reads its output."""

from __future__ import annotations

import os
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
SKIPS = "import pytest\n\ndef test_it():\n    pytest.skip('the moon is full')\n"


def run_tests(
    source: str, folder: Path, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a test file with the project's settings, its temporary files under `folder`."""
    test = folder / "test_it.py"
    test.write_text(source)
    temporary = folder / "tmp"
    temporary.mkdir()
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"),
         "-p", "tests.temporary_files", "--rootdir", str(folder), *options, str(test)],
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
