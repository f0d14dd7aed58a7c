"""gcmem bench retrieval"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gcmem.bench.data.evidence import SETS, load_conversations
from gcmem.bench.report.table import to_markdown
from gcmem.bench.report.tables_retrieval import Figures, category_table, figures, retrieval_table
from gcmem.bench.run.retrieval import MAIN_CUT, measure
from gcmem.cli.options import AsJson
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.defaults import default_encoder
from gcmem.errors import InvalidInputError


def retrieval(
    dataset: Annotated[
        list[str],
        typer.Option(
            help="locomo=FILE, longmemeval=FILE, or memora=SESSIONS,QUESTIONS (or a folder with "
            "both): as published, or as JSON lines (.jsonl, .jsonl.xz); repeatable."
        ),
    ],
    questions: Annotated[
        int | None, typer.Option(min=1, help="Ask only this many questions per dataset, at random.")
    ] = None,
    rerank: Annotated[
        int,
        typer.Option(min=0, help="Re-rank this many questions per dataset; takes seconds each."),
    ] = 0,
    seed: Annotated[
        int, typer.Option(help="Draws questions, and LongMemEval's extra sessions.")
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option(help="Also write the results to this file: JSON if it ends in .json."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how much of the evidence a search finds in real conversations.

    Compares the product's search by meaning, by words and by both with plain BM25 and plain dense
    search.
    """
    named = [_named(said) for said in dataset]
    results: list[dict[str, Any]] = []
    pages: list[str] = []
    for name, path in named:
        conversations = load_conversations(name, path, questions=questions, seed=seed)
        with progress_bar(name) as advance:
            asked = measure(
                conversations, encoder=default_encoder(), rerank=rerank, seed=seed, progress=advance
            )
        found = figures(asked)
        results.append({"dataset": name, "seed": seed, "rows": [_row(row) for row in found]})
        tables = (retrieval_table(name, found), category_table(name, found))
        pages += [to_markdown(table) for table in tables]
        if not as_json:
            console.print("\n".join(pages[-2:]), markup=False, soft_wrap=True)
    if as_json:
        print_json(results)
    if output is not None:
        machine = json.dumps(results, ensure_ascii=False, indent=2) + "\n"
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(machine if output.suffix == ".json" else "\n".join(pages), "utf-8")


def _named(said: str) -> tuple[str, Path]:
    name, _, path = said.partition("=")
    if name not in SETS or not path:
        known = ", ".join(f"{each}=PATH" for each in SETS)
        raise InvalidInputError(f"--dataset {said}: pass one of {known}")
    return name, Path(path)


def _row(row: Figures) -> dict[str, Any]:
    return {
        "row": row.row,
        "n": row.n,
        **{f"recall@{k}": share for k, share in row.recall.items()},
        f"hit@{MAIN_CUT}": row.hit,
        "p50_ms": row.p50_ms,
        "categories": {
            name: {"n": n, f"recall@{MAIN_CUT}": share}
            for name, (n, share) in row.categories.items()
        },
    }
