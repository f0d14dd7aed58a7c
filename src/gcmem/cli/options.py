"""The options that several commands share, and how they open a memory."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from gcmem.config import Settings
from gcmem.errors import InvalidInputError
from gcmem.ingest import parse_time
from gcmem.memory import DEFAULT_PATH, Memory

StorePath = Annotated[
    Path,
    typer.Option("--path", envvar="GCMEM_PATH", help="The store's file.", show_default=False),
]
UserId = Annotated[str | None, typer.Option("--user", help="Whose memory (user_id).")]
AgentId = Annotated[str | None, typer.Option("--agent", help="Which agent's memory (agent_id).")]
RunId = Annotated[str | None, typer.Option("--run", help="Which run's memory (run_id).")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", help="What was true then: 2026-03-01T09:00:00Z.", metavar="TIME"),
]
KnownAt = Annotated[
    str | None,
    typer.Option("--known-at", help="What the memory had recorded by then.", metavar="TIME"),
]
Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", help="Metadata that must match; repeatable.", metavar="KEY=VALUE"),
]
K = Annotated[int, typer.Option("-k", help="How many chunks at the most.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

__all__ = [
    "DEFAULT_PATH",
    "AgentId",
    "AsJson",
    "AsOf",
    "Filters",
    "K",
    "KnownAt",
    "RunId",
    "StorePath",
    "UserId",
    "open_existing",
    "open_memory",
    "pairs",
    "when",
]


def open_memory(path: Path) -> Memory:
    """Opens the store, making it where there is none; what is untrusted erases nothing there."""
    return Memory(path, settings=Settings(respect_trust=True))


def open_existing(path: Path) -> Memory:
    """Opens the store; reading from a path where there is none is a mistake worth telling."""
    check_exists(path)
    return open_memory(path)


def check_exists(path: Path) -> None:
    """Raises an error that says how to make a store when there is none at `path`."""
    if str(path) != ":memory:" and not path.expanduser().exists():
        raise InvalidInputError(f"no store at {path}; make one: gcmem add --path {path} 'a fact'")


def when(text: str | None) -> datetime | None:
    """Reads a time option."""
    return None if text is None else parse_time(text)


def pairs(items: list[str] | None) -> dict[str, Any]:
    """Reads KEY=VALUE options; true, false, null and numbers are taken as such."""
    import json

    found: dict[str, Any] = {}
    for item in items or ():
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise InvalidInputError(f"{item!r}: write KEY=VALUE")
        try:
            found[key] = json.loads(value)
        except json.JSONDecodeError:
            found[key] = value
    return found
