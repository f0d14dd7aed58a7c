"""gcmem judge"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from gcmem.cli.counting import counted, part, verb
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
from gcmem.cli.oracles import skipped_warning
from gcmem.cli.output import console, print_json, progress_bar, warn
from gcmem.judge.ahead import Judged
from gcmem.memory import Memory

WATCH_S = 2.0

Limit = Annotated[
    int | None, typer.Option(min=1, help="Judge at most this many chunks, then stop.")
]


def judge(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    limit: Limit = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep judging what is added, until Ctrl-C.")
    ] = False,
    oracle: OracleName = "local",
    base_url: BaseURL = None,
    as_json: AsJson = False,
) -> None:
    """Judge which claims newer ones have ended.

    Searches use the verdicts and need no model then. A search judges a little by itself, so it
    also works without this. If it is stopped, the next run continues. Run it from cron, or with
    --watch beside other programs. Each conflict model (--oracle) has its own verdicts; `llm:` is
    called once per new message, `llm-pairwise:` once per pair.
    """
    # Nothing is removed here, so the oracle need not be qualified.
    judging = Judging(oracle=oracle, base_url=base_url, unqualified=True)
    with open_existing(locate(path=path, store=store, stm=stm), judging) as memory:
        while True:
            found, left = _judge(memory, limit)
            if found.judged or not watch:
                _say(found, left, as_json=as_json)
            if not watch:
                break
            time.sleep(WATCH_S)
        skipped = skipped_warning(memory.oracle)
    if skipped:
        warn(skipped)


def link(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    limit: Limit = None,
    oracle: OracleName = "local",
    base_url: BaseURL = None,
    as_json: AsJson = False,
) -> None:
    """The old name of `gcmem judge`; the next release drops it."""
    warn("gcmem link is called gcmem judge now")
    judge(
        path=path, store=store, stm=stm, limit=limit, oracle=oracle, base_url=base_url,
        as_json=as_json,
    )  # fmt: skip


def _judge(memory: Memory, limit: int | None) -> tuple[Judged, int]:
    with progress_bar("judging") as advance:
        return memory.judge(limit=limit, progress=advance), memory.pending()


def _say(found: Judged, left: int, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif not found.judged:
        console.print("There is nothing new to judge.")
    else:
        rest = f"; {verb(left, 'is', 'are')} left" if left else ""
        console.print(
            f"Judged {part(found.judged, found.judged + left, 'chunk')}: "
            f"{counted(found.conflicts, 'conflict')} with older ones found{rest}."
        )
