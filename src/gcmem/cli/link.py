"""gcmem link"""

from __future__ import annotations

from typing import Annotated

import typer

from gcmem.cli.options import (
    AsJson,
    BaseURL,
    Judging,
    OracleName,
    StmURL,
    StorePath,
    StoreURL,
    locate,
    open_existing,
)  # fmt: skip
from gcmem.cli.oracles import shortfall
from gcmem.cli.output import console, print_json, progress_bar, warn


def link(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Judge at most this many chunks, then stop.")
    ] = None,
    oracle: OracleName = "local",
    base_url: BaseURL = None,
    as_json: AsJson = False,
) -> None:
    """Find conflicts ahead of time: judge what was added since the last time.

    Searches then follow the conflicts that were found to the newest state, however much lies
    between. They are right without it. Stopped at any moment, the next run goes on. A search
    follows what its own oracle has found. `llm:` is asked once a chunk, `llm-pairwise:` once a
    pair.
    """
    # Nothing is removed here, so whether the oracle may is of no concern.
    judging = Judging(oracle=oracle, base_url=base_url, unqualified=True)
    with (
        open_existing(locate(path=path, store=store, stm=stm), judging) as memory,
        progress_bar("judging") as advance,
    ):
        done = memory.link(limit=limit, progress=advance)
        missed = shortfall(memory.oracle)
    if missed:
        warn(missed)
    if as_json:
        print_json({"judged": done})
    else:
        console.print(f"judged {done} chunks")
