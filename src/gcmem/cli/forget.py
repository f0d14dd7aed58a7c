"""gcmem forget"""

from __future__ import annotations

from typing import Annotated

import typer

from gcmem.cli.options import (
    AgentId,
    AsJson,
    Filters,
    RunId,
    StmURL,
    StorePath,
    StoreURL,
    UserId,
    locate,
    open_existing,
    pairs,
)  # fmt: skip
from gcmem.cli.output import console, print_json
from gcmem.types import is_storable


def forget(
    ids: Annotated[list[str] | None, typer.Argument(help="Chunk ids.")] = None,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    filters: Filters = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before erasing a scope.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase chunks for good: by id, or everything in a scope. Nothing else deletes."""
    if not ids and not yes and (user or agent or run or filters):
        typer.confirm("Erase everything that matches, for good?", abort=True, err=True)
    with open_existing(locate(path=path, store=store, stm=stm)) as memory:
        known = memory.store.log.get([i for i in ids or () if is_storable(i)])
        count = memory.forget(
            ids=ids or None,
            user_id=user,
            agent_id=agent,
            run_id=run,
            filters=pairs(filters),
        )
        left = memory.erasing() if count else None
    if as_json:
        print_json({"forgotten": count, "erasing": left})
    else:
        console.print(f"Erased {count} chunks.")
    if ids and count < len(set(ids)):
        for unknown in [i for i in ids if i not in known]:
            typer.echo(f"There is no chunk {unknown}.", err=True)
        raise typer.Exit(1)
