"""gcmem search"""

from __future__ import annotations

from typing import Annotated, cast

import typer

from gcmem.cli.counting import counted, part
from gcmem.cli.options import (
    AgentId,
    AsJson,
    AsOf,
    BaseURL,
    Filters,
    Judging,
    K,
    KnownAt,
    Option,
    OracleName,
    RunId,
    StmURL,
    StorePath,
    StoreURL,
    Tz,
    Unqualified,
    UserId,
    locate,
    open_existing,
    pairs,
    when,
)  # fmt: skip
from gcmem.cli.oracles import skipped_warning
from gcmem.cli.output import console, print_json, warn
from gcmem.cli.tables import (
    kept_table,
    outdated_table,
    print_doubts,
    print_undecided,
    ranked_table,
)
from gcmem.types import Mode, SearchResult, View


def search(
    query: Annotated[str, typer.Argument(help="The question, or a few words.")],
    option: Option = None,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    k: K = 10,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    tz: Tz = None,
    filters: Filters = None,
    mode: Annotated[
        str,
        typer.Option(
            help="How to show outdated chunks: drop (in a list of their own), demote (last) or "
            "annotate (marked)."
        ),
    ] = "drop",
    view: Annotated[
        str,
        typer.Option(
            help="What the question is about: current, past (outdated chunks too), changes "
            "(the same, oldest first), or auto to go by its words."
        ),
    ] = "auto",
    oracle: OracleName = "local",
    base_url: BaseURL = None,
    unqualified: Unqualified = False,
    as_json: AsJson = False,
) -> None:
    """Find what is still true, and show what is outdated and why."""
    judging = Judging(oracle=oracle, base_url=base_url, unqualified=unqualified)
    with open_existing(locate(path=path, store=store, stm=stm), judging) as memory:
        result = memory.search(
            query,
            user_id=user,
            agent_id=agent,
            run_id=run,
            k=k,
            as_of=when(as_of, tz=tz),
            known_at=when(known_at, tz=tz),
            filters=pairs(filters),
            mode=cast(Mode, mode),
            options=option or (),
            view=cast(View, view),
        )
        gone = {shadow.candidate.chunk.id for shadow in result.shadows if shadow.is_whole}
        removed = len(gone) if memory.removes else 0
        skipped = skipped_warning(memory.oracle)
    if skipped:
        warn(skipped)
    if as_json:
        print_json(result)
        return
    if not result.candidates:
        console.print("Nothing found.")
    elif result.view != "current":
        console.print(f"View: {result.view}, with what is outdated. Without it: --view current.")
        console.print(ranked_table(result))
    elif mode == "drop":
        _print_found(result, most=k, current=len(result.candidates) - removed)
    else:
        console.print(ranked_table(result))
    print_doubts(result)
    print_undecided(result)
    timings = result.timings
    console.print(
        f"{counted(len(result.candidates), 'candidate')} in {timings.total_ms:.0f} ms: encode "
        f"{timings.encode_ms:.0f}, retrieve {timings.retrieve_ms:.0f}, conflict model "
        f"{timings.conflict_ms:.0f}",
        style="dim",
    )


def _print_found(result: SearchResult, *, most: int, current: int) -> None:
    """Prints at most `most` chunks of each kind; `current` is how many are still true in all."""
    title = f"Still true: {part(len(result.kept), current, 'chunk')}"
    console.print(kept_table(result.kept, title=title))
    if result.shadows:
        console.print(outdated_table(result.shadows, most=most))
