"""gcmem demo"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from gcmem.cli.counting import counted
from gcmem.cli.location import check_folder
from gcmem.cli.options import AsJson
from gcmem.cli.output import console, print_json
from gcmem.cli.tables import outdated_table
from gcmem.errors import InvalidInputError
from gcmem.ingest import read_session_file
from gcmem.memory import Memory
from gcmem.store.sqlite.file import IN_MEMORY
from gcmem.types import Answer

SESSION = Path(__file__).with_name("demo_session.jsonl")
USER = "ana"
BEFORE_THE_MOVE = datetime(2025, 6, 30, tzinfo=UTC)
LABELS = {
    "standard": "plain RAG",
    "timestamp": "timestamp re-ranking",
    "gcmem": "gcmem",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of the demo, and its true answer at the end of the conversation."""

    text: str
    options: tuple[str, ...]
    truth: str


QUESTIONS = (
    Question(text="In which city do I live?", options=("Porto", "Lyon"), truth="Lyon"),
    Question(
        text="Which port does the staging API listen on?",
        options=("8080", "9090"),
        truth="9090",
    ),
    Question(text="Who supplies our coffee beans?", options=("Delta", "Mokka"), truth="Mokka"),
    Question(
        text="Which medicine am I allergic to?",
        options=("penicillin", "aspirin"),
        truth="penicillin",
    ),
)


def demo(
    path: Annotated[
        str, typer.Option(help="Where to keep the demo's store; default: only in memory.")
    ] = IN_MEMORY,
    as_json: AsJson = False,
) -> None:
    """Show with an example how outdated facts are left out."""
    if path != IN_MEMORY:
        check_folder(Path(path))
    turns = read_session_file(SESSION)
    with Memory(path) as memory:
        if memory.get_all(user_id=USER, limit=1):
            raise InvalidInputError(
                f"{path} already holds the demo's conversation; pass a new path"
            )
        chunks = memory.add(turns, user_id=USER)
        answers = {
            question: memory.ask_paths(
                question.text, user_id=USER, options=question.options, mode="forced-choice"
            )
            for question in QUESTIONS
        }
        earlier = memory.ask(
            QUESTIONS[0].text, user_id=USER, options=QUESTIONS[0].options, as_of=BEFORE_THE_MOVE
        )
    if as_json:
        print_json(
            {
                "chunks": len(chunks),
                "questions": [
                    {"question": q.text, "truth": q.truth, "answers": found}
                    for q, found in answers.items()
                ],
                "earlier": {"as_of": BEFORE_THE_MOVE, "text": earlier.text},
            }
        )
        return
    console.print(
        f"\n{counted(len(chunks), 'message')} of a conversation over ten months. Ana moved, the "
        "staging API got another port, the coffee comes from somebody else, and her allergy "
        "stayed. The old statements are still in memory, and outnumber the new.\n"
    )
    for question, found in answers.items():
        _print_question(question, found)
    console.print(
        f"And on {BEFORE_THE_MOVE:%Y-%m-%d}? [bold]{earlier.text}[/bold]: nothing was deleted, "
        "--as-of asks the same memory about another day.\n"
    )


def _print_question(question: Question, answers: tuple[Answer, ...]) -> None:
    table = Table(title=question.text, title_justify="left", title_style="bold")
    table.add_column("read from")
    table.add_column("answer")
    table.add_column("")
    table.add_column("chunks read", justify="right")
    for answer in answers:
        right = answer.choice == question.truth
        table.add_row(
            LABELS[answer.path],
            answer.text,
            "[green]right[/green]" if right else "[red]stale[/red]",
            str(len(answer.resolution.kept)),
        )
    console.print(table)
    relevant = [s for s in answers[-1].resolution.shadows if s.candidate.relevance > 0.3]
    if relevant:
        console.print(outdated_table(relevant))
    console.print()
