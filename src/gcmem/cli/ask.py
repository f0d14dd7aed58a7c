"""gcmem ask"""

from __future__ import annotations

from typing import Annotated, cast, get_args

import typer

from gcmem.cli.options import (
    AgentId,
    AsJson,
    AsOf,
    BaseURL,
    Filters,
    Judging,
    KnownAt,
    OracleName,
    ReaderName,
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
from gcmem.cli.output import console, print_json, print_resolution, warn
from gcmem.types import AnswerPath, PromptMode, check_choice


def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    option: Annotated[
        list[str] | None, typer.Option("--option", help="A possible answer; repeatable.")
    ] = None,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    k: Annotated[
        int, typer.Option("-k", help="Chunks by similarity; the recency buffer's come on top.")
    ] = 10,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    filters: Filters = None,
    by: Annotated[
        str, typer.Option(help="What the reader sees: standard, timestamp, gcmem, or all three.")
    ] = "gcmem",
    mode: Annotated[str, typer.Option(help="forced-choice, or allow-unclear.")] = "allow-unclear",
    oracle: OracleName = "local",
    reader: ReaderName = "local",
    base_url: BaseURL = None,
    unqualified: Unqualified = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from memory, by voting or quoting, or with a language model (--reader)."""
    every = get_args(AnswerPath)
    check_choice(by, name="--by", allowed=(*every, "all"))
    judging = Judging(oracle=oracle, reader=reader, base_url=base_url, unqualified=unqualified)
    with open_existing(locate(path=path, store=store, stm=stm), judging) as memory:
        answers = memory.ask_paths(
            question,
            user_id=user,
            agent_id=agent,
            run_id=run,
            options=option or (),
            k=k,
            as_of=when(as_of),
            known_at=when(known_at),
            filters=pairs(filters),
            paths=every if by == "all" else (cast(AnswerPath, by),),
            mode=cast(PromptMode, mode),
        )
        missed = shortfall(memory.oracle)
    if missed:
        warn(missed)
    if as_json:
        print_json(answers if by == "all" else answers[0])
        return
    for answer in answers:
        label = f"{answer.path}: " if by == "all" else ""
        console.print(f"{label}{answer.text}", markup=False)
    print_resolution(answers[-1].resolution)
