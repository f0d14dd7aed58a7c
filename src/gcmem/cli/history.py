"""gcmem history"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gcmem.cli.counting import part, verb
from gcmem.cli.options import (
    AgentId,
    AsJson,
    AsOf,
    BaseURL,
    Filters,
    Judging,
    KnownAt,
    OracleName,
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
from gcmem.cli.output import console, print_json, to_json
from gcmem.cli.tables import timeline_table
from gcmem.filters import make_filter
from gcmem.outdated import Witness, what_is_known


def history(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    tz: Tz = None,
    filters: Filters = None,
    limit: Annotated[int, typer.Option(min=0, help="The newest N chunks; 0 for all.")] = 100,
    ids: Annotated[bool, typer.Option("--ids", help="Show the id of every chunk.")] = False,
    oracle: OracleName = "local",
    base_url: BaseURL = None,
    as_json: AsJson = False,
) -> None:
    """Show what was remembered, and what of it is outdated.

    A chunk is marked once it was judged: in the background, by `gcmem judge` or by a search.
    """
    located = locate(path=path, store=store, stm=stm)
    where = make_filter(user, agent, run, when(as_of, tz=tz), when(known_at, tz=tz), pairs(filters))
    judging = Judging(oracle=oracle, base_url=base_url, unqualified=True)  # nothing is removed
    with open_existing(located, judging) as memory:
        log = memory.store.log
        newest = log.scan(where, by_time=True, newest_first=True, limit=limit or None)
        chunks = list(newest)[::-1]
        total = log.count(where)
        known = what_is_known(memory, chunks, where=where)
    witnesses, unjudged = known.witnesses, known.unjudged
    if as_json:
        print_json(
            [
                {
                    **to_json(chunk),
                    "outcome": witnesses[chunk.id].outcome if chunk.id in witnesses else "current",
                    "shadowed_by": _shadowed_by(witnesses.get(chunk.id)),
                    "judged": chunk.id not in unjudged,
                }
                for chunk in chunks
            ]
        )
        return
    console.print(f"{part(len(chunks), total, 'chunk')} in {located.shown} (UTC)", markup=False)
    if chunks:
        console.print(timeline_table(chunks, witnesses, ids=ids))
    if unjudged:
        console.print(
            f"{verb(len(unjudged), 'chunk has', 'chunks have')} not been judged yet and may be "
            f"outdated; run: gcmem judge{located.flag}",
            style="yellow",
            soft_wrap=True,
        )


def _shadowed_by(witness: Witness | None) -> dict[str, Any] | None:
    if witness is None:
        return None
    verdict = witness.verdict
    return {
        "witness": witness.id,
        "score": verdict.score,
        "oracle": verdict.oracle,
        "by": verdict.by,
        "reason": verdict.reason,
        "ended": witness.ended,
    }
