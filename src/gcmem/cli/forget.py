"""gcmem forget"""

from __future__ import annotations

from typing import Annotated

import typer

from gcmem.cli.counting import counted, verb
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
from gcmem.cli.output import console, print_json, warn
from gcmem.filters import make_filter
from gcmem.types import is_storable


def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Chunk ids, as `gcmem history --ids` shows them.")
    ] = None,
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
    """Erase chunks permanently, by id or by user, agent, run or filter.

    Before it erases a whole scope, it says how many chunks match, and asks. Exit code 1: nothing
    matched.
    """
    wanted = pairs(filters)
    with open_existing(locate(path=path, store=store, stm=stm)) as memory:
        log = memory.store.log
        known = log.get([i for i in ids or () if is_storable(i)])
        if not ids and (user or agent or run or wanted):
            count = log.count(make_filter(user, agent, run, None, None, wanted))
            if count:
                _confirm(count, yes=yes)
        count = memory.forget(
            ids=ids or None, user_id=user, agent_id=agent, run_id=run, filters=wanted
        )
        left = memory.erasing() if count else None
    if as_json:
        print_json({"forgotten": count, "erasing": left})
    elif count:
        console.print(f"Erased {counted(count, 'chunk')}.")
    for unknown in [i for i in ids or () if i not in known]:
        warn(f"there is no chunk {unknown}")
    if len(known) > count:
        warn(
            f"{verb(len(known) - count, 'chunk is', 'chunks are')} not in this scope and will stay"
        )
    if not count and not ids:
        warn("nothing matches, so nothing was erased")
    if not count or len(set(ids or ())) > count:
        raise typer.Exit(1)


def _confirm(count: int, *, yes: bool) -> None:
    """Says how many chunks match, and asks for confirmation unless `yes`."""
    chunks = counted(count, "chunk")
    if yes:
        warn(f"erasing {chunks} permanently")
        return
    try:
        typer.confirm(f"Erase {chunks} permanently?", abort=True, err=True)
    except typer.Abort:
        typer.echo(err=True)
        warn("nothing was erased; --yes erases without asking")
        raise typer.Exit(1) from None
