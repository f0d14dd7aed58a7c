"""gcmem ask"""

from __future__ import annotations

from typing import Annotated, cast, get_args

import typer

from gcmem.cli.counting import counted
from gcmem.cli.options import (
    AgentId,
    AsJson,
    AsOf,
    BaseURL,
    Filters,
    Judging,
    KnownAt,
    Option,
    OracleName,
    ReaderName,
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
from gcmem.cli.tables import kept_table, outdated_table, plain, print_undecided
from gcmem.types import Answer, AnswerPath, PromptMode, View, check_choice


def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    option: Option = None,
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    k: Annotated[
        int,
        typer.Option(
            "-k",
            help="How many similar chunks to read, besides recent ones; also how many to list.",
        ),
    ] = 10,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    tz: Tz = None,
    filters: Filters = None,
    by: Annotated[
        str,
        typer.Option(
            help="Which chunks the answer is read from: gcmem (still true), standard (all), "
            "timestamp (all, newest first); or all to compare the three."
        ),
    ] = "gcmem",
    mode: Annotated[
        str, typer.Option(help="allow-unclear, or forced-choice to always get an answer.")
    ] = "allow-unclear",
    view: Annotated[
        str,
        typer.Option(
            help="What the question is about: current, past (outdated chunks too), changes "
            "(the same, oldest first), or auto to go by its words."
        ),
    ] = "auto",
    oracle: OracleName = "local",
    reader: ReaderName = "local",
    base_url: BaseURL = None,
    unqualified: Unqualified = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from memory, and show the chunk that answered.

    Without a language model (--reader) it chooses between the options, or quotes a sentence.
    """
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
            as_of=when(as_of, tz=tz),
            known_at=when(known_at, tz=tz),
            filters=pairs(filters),
            paths=every if by == "all" else (cast(AnswerPath, by),),
            mode=cast(PromptMode, mode),
            view=cast(View, view),
        )
        skipped = skipped_warning(memory.oracle)
    if skipped:
        warn(skipped)
    if as_json:
        print_json(answers if by == "all" else answers[0])
        return
    for answer in answers:
        label = f"{answer.path}: " if by == "all" else ""
        console.print(plain(f"{label}{answer.text}"))
    _print_read(answers[-1], most=k)


def _print_read(answer: Answer, *, most: int) -> None:
    """Prints the chunks that were read, with the one that answered, and the outdated ones."""
    found = answer.resolution
    if found.kept:
        is_true = answer.path == "gcmem" and answer.view == "current"
        title = "Still true" if is_true else "Read"
        mark = "" if answer.source is None else "; > marks the answer"
        title = f"{title}: {counted(len(found.kept), 'chunk')}{mark}"
        console.print(kept_table(found.kept, title=title, answered=answer.source))
    else:
        console.print("Nothing found.")
    if found.shadows:
        console.print(outdated_table(found.shadows, most=most))
    print_undecided(found)
