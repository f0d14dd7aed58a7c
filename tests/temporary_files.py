"""Gives a test run a temporary folder of its own, which must be empty when the run ends.

Subprocesses inherit it as TMPDIR, so what a server or a browser leaves behind is found as well.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

PYTEST = "pytest"
"""The folder of `tmp_path`; pytest itself removes what passing tests wrote there."""
ALLOWED = {PYTEST, ".lockfile"}  # the PostgreSQL wheel never removes its lock file
FOLDER = pytest.StashKey[Path]()
LEFT = pytest.StashKey[list[str]]()
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)  # before pytest decides where `tmp_path` is
def pytest_configure(config: pytest.Config) -> None:
    # A short name: the path of a unix socket has room for about a hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="gcmem-"))
    config.stash[FOLDER] = folder
    config.stash[LEFT] = []
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    if config.option.basetemp is None:
        config.option.basetemp = folder / PYTEST
    # Registered first, so it runs last: other handlers may still use the folder.
    atexit.register(_remove, config)


@pytest.hookimpl(trylast=True)  # after the last fixture was torn down
def pytest_sessionfinish(session: pytest.Session) -> None:
    left = session.config.stash[LEFT]
    left += sorted({p.name for p in session.config.stash[FOLDER].iterdir()} - ALLOWED)
    if left and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.config.stash[FAILED] = True


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    left = config.stash[LEFT]
    if left:
        terminalreporter.section("temporary files left behind", red=True)
        terminalreporter.line("Remove these where they are made: " + ", ".join(left))
    if FAILED in config.stash:
        terminalreporter.line(f"Temporary files of this run are kept in {config.stash[FOLDER]}")


def _remove(config: pytest.Config) -> None:
    if FAILED not in config.stash:
        shutil.rmtree(config.stash[FOLDER], ignore_errors=True)
