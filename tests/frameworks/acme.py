"""One story for every framework: a fact changes, an older one stays true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from gcmem import Memory
from tests.conftest import day

ROOT = Path(__file__).parents[2]
QUESTION = "Which plan is Acme on?"
TRUE = "Acme's billing contact is Priya."
STALE = "Acme is on the Basic plan."
NEW = "Acme upgraded to the Enterprise plan."
STORY = (
    (TRUE, "2025-01-10T09:00:00+00:00"),
    (STALE, "2025-02-01T09:00:00+00:00"),
    (NEW, "2026-03-01T09:00:00+00:00"),
)


def told(memory: Memory) -> Memory:
    """Returns the memory after it heard the story, as user "acme"."""
    memory.add([{"content": text, "at": at} for text, at in STORY], user_id="acme")
    return memory


def crowded(memory: Memory) -> Memory:
    """Returns the memory after it heard of forty values of x, all but one of them stale."""
    for number in range(40):
        memory.add(f"x={number}", at=day(number))
    for number in range(5):
        memory.add(f"y{number}=0", at=day(50))
    return memory


def run_example(name: str, folder: Path) -> list[str]:
    """Runs an example as a user would, and returns its lines."""
    done = _run([str(ROOT / "examples" / name)], folder)
    return done.splitlines()


def run_docs(heading: str, folder: Path) -> None:
    """Runs the code under a heading of docs/integrations.md, as it stands there."""
    page = (ROOT / "docs" / "integrations.md").read_text("utf-8")
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.S | re.M)
    blocks = re.findall(r"```py\n(.*?)```", section, re.S)
    assert blocks
    _run(["-c", "\n".join(blocks)], folder)


def imported_with_gcmem(framework: str, folder: Path) -> bool:
    """Tells whether importing gcmem imports a framework, here where it is installed."""
    return "True" in _run(["-c", f"import sys, gcmem; print({framework!r} in sys.modules)"], folder)


def _run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"HOME": str(folder), "PATH": "", "HAYSTACK_TELEMETRY_ENABLED": "False"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
