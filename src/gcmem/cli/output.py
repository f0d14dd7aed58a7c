"""Output of the commands: text for people, JSON for programs, errors on stderr."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from gcmem.cli.counting import counted
from gcmem.errors import GCMemError, InvalidInputError
from gcmem.transfer import Moved

console = Console(highlight=False)


def fail(error: GCMemError, *, as_json: bool) -> NoReturn:
    """Prints the error on stderr and exits with code 2 for wrong input, otherwise 1."""
    if as_json:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), file=sys.stderr)
    else:
        print(f"gcmem: {error}", file=sys.stderr)
    raise SystemExit(2 if isinstance(error, InvalidInputError) else 1)


def warn(message: object) -> None:
    """Prints a warning on stderr."""
    print(f"gcmem: {message}", file=sys.stderr)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a progress bar on a terminal; yields a function to call with (done, total)."""
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_json(value: Any) -> None:
    """Prints a value as JSON."""
    print(json.dumps(to_json(value), ensure_ascii=False, indent=2))


def to_json(value: Any) -> Any:
    """Turns gcmem's values into plain JSON; times become ISO 8601 in UTC."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def print_moved(moved: Moved) -> None:
    """Prints what was copied and left out, and the result of the check."""
    copied = moved.copied
    console.print(
        f"{moved.source} → {moved.target}: {counted(copied.added, 'chunk')} added, "
        f"{copied.present:,} already there, {copied.embedded:,} embedded again."
    )
    for row in copied.bad_rows:
        console.print(Text(f"left out, line {row.line}: {row.reason}"), style="yellow")
    if copied.bad:
        bad = counted(copied.bad, "row")
        was = "was" if copied.bad == 1 else "were"
        console.print(f"{bad} could not be read or stored and {was} left out.", style="yellow")
    if copied.lowered:
        claimed = counted(copied.lowered, "row")
        got = "it got" if copied.lowered == 1 else "they got"
        console.print(
            f"{claimed} claimed a higher trust level; {got} {copied.max_trust}. See --trust."
        )
    if moved.verified is None:
        console.print("Not verified.")
        return
    rows = counted(moved.verified.rows, "chunk")
    console.print(f"Verified: {rows}, digest {moved.verified.digest}.")
    if not moved.verified.in_order:
        console.print("The target already had some of them, in another order.", style="yellow")
