"""gcmem search"""

from __future__ import annotations

from typing import Annotated, cast

import typer

from gcmem.cli.options import (
    AgentId,
    AsJson,
    AsOf,
    BaseURL,
    Filters,
    Judging,
    K,
    KnownAt,
    OracleName,
    RunId,
    StmURL,
    StorePath,
    StoreURL,
    Unqualified,
    UserId,
    locate,
    open_existing,
    pairs,
    when,
)  # fmt: skip
from gcmem.cli.oracles import shortfall
from gcmem.cli.output import (
    console,
    print_json,
    print_resolution,
    print_undecided,
    ranked_table,
    warn,
)
from gcmem.types import Mode


def search(
    query: Annotated[str, typer.Argument(help="The question, or a few words.")],
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    k: K = 10,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    filters: Filters = None,
    mode: Annotated[str, typer.Option(help="Shadows: drop, demote or annotate.")] = "drop",
    oracle: OracleName = "local",
    base_url: BaseURL = None,
    unqualified: Unqualified = False,
    as_json: AsJson = False,
) -> None:
    """Find what is still true, and show what is not with the newer chunk that says so."""
    judging = Judging(oracle=oracle, base_url=base_url, unqualified=unqualified)
    with open_existing(locate(path=path, store=store, stm=stm), judging) as memory:
        result = memory.search(
            query,
            user_id=user,
            agent_id=agent,
            run_id=run,
            k=k,
            as_of=when(as_of),
            known_at=when(known_at),
            filters=pairs(filters),
            mode=cast(Mode, mode),
        )
        missed = shortfall(memory.oracle)
    if missed:
        warn(missed)
    if as_json:
        print_json(result)
        return
    if mode == "drop":
        print_resolution(result)
    else:
        console.print(ranked_table(result))
        print_undecided(result)
    timings = result.timings
    console.print(
        f"{len(result.candidates)} candidates; encode {timings.encode_ms:.1f} ms, retrieve "
        f"{timings.retrieve_ms:.1f} ms, κ {timings.conflict_ms:.1f} ms, "
        f"Φ {timings.dominance_ms:.1f} ms",
        style="dim",
    )
