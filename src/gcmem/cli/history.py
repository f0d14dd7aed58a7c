"""gcmem history"""

from __future__ import annotations

from typing import Annotated

import typer

from gcmem.cli.options import (
    AgentId,
    AsJson,
    AsOf,
    Filters,
    KnownAt,
    RunId,
    StmURL,
    StorePath,
    StoreURL,
    UserId,
    locate,
    open_existing,
    pairs,
    when,
)  # fmt: skip
from gcmem.cli.output import chunk_table, console, print_json


def history(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    filters: Filters = None,
    limit: Annotated[int, typer.Option(help="The newest N chunks; 0 for all.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Show the timeline: every chunk by event time, shadowed or not."""
    where = locate(path=path, store=store, stm=stm)
    with open_existing(where) as memory:
        newest = memory.history(
            user_id=user,
            agent_id=agent,
            run_id=run,
            as_of=when(as_of),
            known_at=when(known_at),
            filters=pairs(filters),
            newest_first=True,
            limit=limit or None,
        )
    chunks = newest[::-1]
    if as_json:
        print_json(chunks)
    else:
        console.print(chunk_table(chunks, title=f"{len(chunks)} chunks in {where.shown}"))
