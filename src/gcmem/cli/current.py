"""gcmem current"""

from __future__ import annotations

from typing import Annotated

import typer

from gcmem.cli.counting import counted, verb
from gcmem.cli.options import (
    AgentId,
    AsJson,
    AsOf,
    Filters,
    RunId,
    StmURL,
    StorePath,
    StoreURL,
    Tz,
    UserId,
    locate,
    open_existing,
    pairs,
    when,
)  # fmt: skip
from gcmem.cli.output import console, print_json
from gcmem.cli.tables import claims_table


def current(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    as_of: AsOf = None,
    tz: Tz = None,
    filters: Filters = None,
    limit: Annotated[int, typer.Option(min=0, help="The newest N claims; 0 for all.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List every claim that still stands."""
    located = locate(path=path, store=store, stm=stm)
    with open_existing(located) as memory:
        claims = memory.current(
            user_id=user,
            agent_id=agent,
            run_id=run,
            as_of=when(as_of, tz=tz),
            filters=pairs(filters),
            limit=limit or None,
        )
        waiting = memory.pending()
    if as_json:
        print_json(
            [
                {"text": claim.text, "at": claim.chunk.at, "speaker": claim.chunk.speaker,
                 "chunk": claim.chunk.id, "span": claim.span}
                for claim in claims
            ]
        )  # fmt: skip
        return
    console.print(f"{counted(len(claims), 'claim')} in {located.shown} (UTC)", markup=False)
    if claims:
        console.print(claims_table(claims))
    if waiting:
        console.print(
            f"{verb(waiting, 'chunk has', 'chunks have')} not been judged yet; run: "
            f"gcmem judge{located.flag}",
            style="yellow",
            soft_wrap=True,
        )
