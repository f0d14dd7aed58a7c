"""gcmem add"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gcmem.cli.options import (
    AgentId,
    AsJson,
    RunId,
    StmURL,
    StorePath,
    StoreURL,
    UserId,
    locate,
    open_memory,
    pairs,
    timezone,
    when,
)  # fmt: skip
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.config import Settings
from gcmem.errors import InvalidInputError
from gcmem.ingest import Message, as_turns, check_limits, read_session_file
from gcmem.types import TRUSTED, UNTRUSTED, Chunk

BATCH = 256
"""Turns of a file that are stored together: a crash loses none that was acknowledged."""


def add(
    text: Annotated[
        list[str] | None, typer.Argument(help="What to remember, one turn each.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="A session file: JSONL, or a chat export (see docs/sessions.md)."),
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
        typer.Option("--metadata", help="Kept with the chunk; repeatable.", metavar="KEY=VALUE"),
    ] = None,
    tz: Annotated[
        str | None, typer.Option(help="Timezone of times in the file that have none: Europe/Rome.")
    ] = None,
    untrusted: Annotated[
        bool,
        typer.Option("--untrusted", help="The source may lie: it can't replace others' facts."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remember one or more messages, or a whole session file."""
    if not text and file is None:
        raise InvalidInputError("nothing to add: give a text, or --file")
    messages: list[Message] = list(text or ())
    if file is not None:
        messages.extend(read_session_file(file, tz=timezone(tz)))
    # Everything is checked before anything is stored: a bad line must not leave half a file.
    turns = as_turns(
        messages, at=when(at), speaker=speaker, session=session, metadata=pairs(metadata)
    )
    check_limits(turns, now=datetime.now(UTC), settings=Settings())
    trust = UNTRUSTED if untrusted else TRUSTED
    chunks: list[Chunk] = []
    where = locate(path=path, store=store, stm=stm)
    with open_memory(where) as memory, progress_bar("remembering") as advance:
        for start in range(0, len(turns), BATCH):
            batch = turns[start : start + BATCH]
            chunks += memory.add(batch, user_id=user, agent_id=agent, run_id=run, trust=trust)
            advance(start + len(batch), len(turns))
    if as_json:
        print_json(chunks)
    else:
        console.print(f"Remembered {len(chunks)} chunks of {len(turns)} turns in {where.shown}.")
