"""Writes docs/cli.md from the real command line: `make docs`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

COMMANDS = (
    "demo", "add", "search", "ask", "history", "forget", "link", "reindex",
    "backup", "export", "import", "migrate", "qualify", "doctor",
    "serve", "mcp", "keys", "keys create", "keys list", "keys revoke",
    "bench", "bench run", "bench report", "bench compare",
    "bench retrieval", "bench epsilon", "bench theory",
    "bench thresholds", "bench data", "bench data build",
    "bench data stats", "bench data leakage", "bench data pairs", "bench data generate",
)  # fmt: skip
HEADER = """# The command line

Written by `make docs` from `gcmem --help`; a test keeps it true.
"""


def reference() -> str:
    """Returns the whole page."""
    parts = [HEADER, _section("gcmem", ())]
    parts += [_section(f"gcmem {command}", tuple(command.split())) for command in COMMANDS]
    return "\n".join(parts)


def _section(title: str, arguments: tuple[str, ...]) -> str:
    shown = subprocess.run(
        [sys.executable, "-m", "gcmem", *arguments, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"},
    ).stdout
    shown = re.sub(r"python -m gcmem|__main__\.py", "gcmem", shown)
    text = "\n".join(line.rstrip() for line in shown.strip().splitlines())
    return f"## {title}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    print(reference(), end="")
