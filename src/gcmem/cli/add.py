"""gcmem add"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gcmem.cli.counting import counted, part, verb
from gcmem.cli.options import (
    AgentId,
    AsJson,
    RunId,
    StmURL,
    StorePath,
    StoreURL,
    Tz,
    UserId,
    locate,
    open_memory,
    pairs,
    timezone,
    when,
)  # fmt: skip
from gcmem.cli.output import console, print_json, progress_bar, warn
from gcmem.errors import InvalidInputError
from gcmem.ingest import as_turns, check_limits, name_turns, read_session_file
from gcmem.settings import Settings
from gcmem.transfer import is_export
from gcmem.types import TRUSTED, UNTRUSTED, Chunk, Scope, Turn

BATCH = 256
"""Messages of a file that are stored together."""


def add(
    text: Annotated[
        list[str] | None, typer.Argument(help="What to remember, one message each.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="A chat to remember: JSON, JSON lines, text, or an export of ChatGPT, Claude or "
            "Slack. Messages that are already stored are skipped."
        ),
    ] = None,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    at: Annotated[
        str | None, typer.Option(help="When it happened; default: now.", metavar="TIME")
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="Who said it; default: user.")] = None,
    session: Annotated[str | None, typer.Option(help="Which conversation it belongs to.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", help="Stored with the chunk; repeatable.", metavar="KEY=VALUE"),
    ] = None,
    tz: Tz = None,
    untrusted: Annotated[
        bool,
        typer.Option("--untrusted", help="The source may lie: it can't replace trusted facts."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remember one or more messages, or a whole chat file."""
    if not text and file is None:
        raise InvalidInputError("nothing to add: give a text, or --file")
    scope = Scope(user_id=user, agent_id=agent, run_id=run)
    # Everything is checked before anything is stored: a bad line must not leave half a file.
    turns = as_turns(
        [*(text or ()), *(_read(file, tz) if file else ())],
        at=when(at, tz=tz),
        speaker=speaker,
        session=session,
        metadata=pairs(metadata),
    )
    check_limits(turns, now=datetime.now(UTC), settings=Settings())
    if file is not None:
        typed = len(text or ())  # messages on the command line are always new
        source = str(file.resolve())
        turns = (*turns[:typed], *name_turns(turns[typed:], scope=scope, source=source))
    trust = UNTRUSTED if untrusted else TRUSTED
    chunks: list[Chunk] = []
    where = locate(path=path, store=store, stm=stm)
    with open_memory(where) as memory, progress_bar("remembering") as advance:
        for start in range(0, len(turns), BATCH):
            batch = turns[start : start + BATCH]
            chunks += memory.add(
                batch, user_id=user, agent_id=agent, run_id=run, trust=trust, only_new=True
            )
            advance(start + len(batch), len(turns))
    added = _count_added(turns, chunks)
    skipped = len(turns) - added
    there = f"{verb(skipped, 'was', 'were')} there already"
    if as_json:
        print_json(chunks)
        if skipped:
            warn(f"{there}, of {counted(len(turns), 'message')}")
        return
    split = f", as {counted(len(chunks), 'chunk')}" if len(chunks) > added else ""
    console.print(
        f"Added {part(added, len(turns), 'message')} to {where.shown}{split}"
        + (f"; {there}." if skipped else "."),
        soft_wrap=True,
        markup=False,
    )


def _read(file: Path, tz: str | None) -> tuple[Turn, ...]:
    if is_export(file):
        raise InvalidInputError(
            f"{file} is an export of gcmem; import it with: gcmem import {file}"
        )
    return read_session_file(file, tz=timezone(tz))


def _count_added(turns: tuple[Turn, ...], chunks: list[Chunk]) -> int:
    """Returns how many messages were stored, each as one or more chunks."""
    stored = {chunk.id.partition(".")[0] for chunk in chunks}
    return sum(turn.id is None or turn.id in stored for turn in turns)
