"""gcmem link"""

from __future__ import annotations

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
from gcmem.memory import Memory
from gcmem.outdated import judged_up_to
from gcmem.types import ChunkFilter


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
    """Find outdated chunks ahead of time.

    It judges chunks that were added since the last run. Then `gcmem history` marks outdated chunks,
    and searches find the newest state even if much was said in between. Searches also work without
    it. If it is stopped, the next run continues. Verdicts count only for the conflict model
    (--oracle) that gave them. `llm:` is called once per chunk, `llm-pairwise:` once per pair.
    """
    # Nothing is removed here, so the oracle need not be qualified.
    judging = Judging(oracle=oracle, base_url=base_url, unqualified=True)
    with (
        open_existing(locate(path=path, store=store, stm=stm), judging) as memory,
        progress_bar("judging") as advance,
    ):
        found = memory.link(limit=limit, progress=advance)
        left = 0 if limit is None else _count_unjudged(memory)
        skipped = skipped_warning(memory.oracle)
    if skipped:
        warn(skipped)
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


def _count_unjudged(memory: Memory) -> int:
    judged = judged_up_to(memory.store, oracle=memory.oracle.id)
    return sum(1 for _ in memory.store.log.scan(ChunkFilter(), after_seq=judged))
