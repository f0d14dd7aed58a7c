"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gcmem.errors import GCMemError
from gcmem.moving import Moved
from gcmem.types import Candidate, Chunk, Resolution, SearchResult, Shadow

console = Console(highlight=False)


def fail(error: GCMemError, *, as_json: bool) -> NoReturn:
    """Prints the error on stderr and ends with exit code 1."""
    if as_json:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), file=sys.stderr)
    else:
        print(f"gcmem: {error}", file=sys.stderr)
    raise SystemExit(1)


def warn(message: object) -> None:
    """Prints a warning on stderr."""
    print(f"gcmem: {message}", file=sys.stderr)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar on a terminal while the work lasts; yields what to call with (done, total)."""
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


def time_of(chunk: Chunk) -> str:
    """Returns the event time for a table."""
    return chunk.at.strftime("%Y-%m-%d %H:%M") if chunk.at else "(undated)"


def chunk_table(chunks: Iterable[Chunk], *, title: str) -> Table:
    """Returns a timeline of chunks."""
    table = Table(title=title, title_justify="left")
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("who")
    table.add_column("text", overflow="fold")
    table.add_column("id", no_wrap=True, style="dim")
    for chunk in chunks:
        table.add_row(time_of(chunk), Text(chunk.speaker), Text(chunk.text), chunk.id)
    return table


def kept_table(kept: Iterable[Candidate], *, title: str = "Still true") -> Table:
    """Returns the chunks that stay."""
    table = Table(title=title, title_justify="left", title_style="bold green")
    table.add_column("relevance", justify="right")
    table.add_column("from")
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("text", overflow="fold")
    for item in kept:
        table.add_row(
            f"{item.relevance:.2f}", item.origin, time_of(item.chunk), Text(item.chunk.text)
        )
    return table


def ranked_table(result: SearchResult) -> Table:
    """Returns the candidates as the mode ranks them, each shadow with its witness."""
    table = Table(title="Ranked", title_justify="left", title_style="bold")
    table.add_column("relevance", justify="right")
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("text", overflow="fold")
    table.add_column("contradicted by", overflow="fold")
    for item in result:
        shadow = result.shadow_of(item.chunk.id)
        because = "" if shadow is None else shadow.witness.chunk.text
        text = Text(item.chunk.text, style="" if shadow is None else "strike")
        table.add_row(f"{item.relevance:.2f}", time_of(item.chunk), text, Text(because))
    return table


def shadow_table(shadows: Iterable[Shadow]) -> Table:
    """Returns the chunks that went, each with the newer chunk that removed it."""
    table = Table(title="Shadowed", title_justify="left", title_style="bold red")
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("no longer true", overflow="fold", style="strike")
    table.add_column("because", overflow="fold")
    table.add_column("score", justify="right")
    for shadow in shadows:
        witness = shadow.witness.chunk
        table.add_row(
            time_of(shadow.candidate.chunk),
            Text(shadow.candidate.chunk.text),
            Text(f"{time_of(witness)}  {witness.text}"),
            f"{shadow.conflict.score:.2f}",
        )
    return table


def print_resolution(found: SearchResult | Resolution) -> None:
    """Prints kept and shadowed chunks, and what could not be ordered."""
    console.print(kept_table(found.kept) if found.kept else "Nothing found.")
    if found.shadows:
        console.print(shadow_table(found.shadows))
    print_undecided(found)


def print_undecided(found: SearchResult | Resolution) -> None:
    """Prints how many pairs could not be ordered, and where clocks are to blame."""
    if found.undecided:
        console.print(f"{len(found.undecided)} conflicting pairs could not be ordered; both stay.")
    if found.skewed:
        worst = timedelta(seconds=max(skew.disagreement_s for skew in found.skewed))
        console.print(
            f"{len(found.skewed)} of them since their writers' clocks disagree, by {worst} or "
            "more: set the clocks of the machines that write.",
            style="yellow",
        )
    if found.outranked:
        console.print(
            f"{len(found.outranked)} newer chunks contradict more trusted ones; both stay."
        )


def print_moved(moved: Moved) -> None:
    """Prints what a move did, what it left out, and how it was checked."""
    copied = moved.copied
    console.print(
        f"{moved.source} → {moved.target}: {copied.added} chunks added, {copied.present} there "
        f"already, {copied.embedded} embedded anew."
    )
    for row in copied.bad_rows:
        console.print(Text(f"left out, line {row.line}: {row.reason}"), style="yellow")
    if copied.bad:
        console.print(
            f"{copied.bad} rows could not be read or stored and were left out.", style="yellow"
        )
    if copied.lowered:
        rows = "1 row" if copied.lowered == 1 else f"{copied.lowered} rows"
        got = "it got" if copied.lowered == 1 else "they got"
        console.print(
            f"{rows} claimed a higher trust level; {got} {copied.max_trust}. See --trust."
        )
    if moved.verified is None:
        console.print("Not verified.")
        return
    console.print(f"Verified: {moved.verified.rows} chunks, digest {moved.verified.digest}.")
    if not moved.verified.in_order:
        console.print("The target had some of them before, in another order.", style="yellow")
