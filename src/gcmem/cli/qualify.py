"""gcmem qualify"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from gcmem.cli.options import AsJson, BaseURL
from gcmem.cli.oracles import oracle_named
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.errors import InvalidInputError
from gcmem.judge.fitness import save_fitness
from gcmem.judge.labelled import SHIPPED_PAIRS, load_pairs, load_sets
from gcmem.judge.qualification import MIN_LABELS, Qualification, qualify_pairs, qualify_sets
from gcmem.resolve import Resolver

MEANING = {
    "optimal": "it may remove chunks",
    "marginal": "it may remove chunks, but misses or over-removes noticeably",
    "unfit": "it may only annotate",
}


def qualify(
    oracle: Annotated[
        str,
        typer.Option(help="local, nli:FOLDER, llm:MODEL or llm-pairwise:MODEL (with --base-url)."),
    ] = "local",
    pairs: Annotated[
        Path | None,
        typer.Option(help="Labelled pairs, JSONL; default: the pairs that come with gcmem."),
    ] = None,
    instances: Annotated[
        Path | None,
        typer.Option(help="Labelled whole memories, JSONL; counts removed chunks, not pairs."),
    ] = None,
    base_url: BaseURL = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Judge only the first N; nothing is recorded.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure whether a conflict model may remove chunks."""
    if pairs is not None and instances is not None:
        raise InvalidInputError("give --pairs or --instances, not both")
    judged = oracle_named(oracle, base_url=base_url)
    with progress_bar("judging") as advance:
        if instances is not None:
            found = qualify_sets(Resolver(judged), load_sets(instances)[:limit], progress=advance)
        else:
            labelled = load_pairs(pairs or SHIPPED_PAIRS)[:limit]
            found = qualify_pairs(judged, labelled, progress=advance)
    if as_json:
        print_json(found)
    else:
        _print(found)
    if limit is None and found.enough:
        save_fitness(found.oracle, found.fitness)
    elif not as_json:
        needed = f"{MIN_LABELS} conflicts and {MIN_LABELS} other pairs"
        console.print(f"Not recorded: a record needs {needed}.")


def _print(found: Qualification) -> None:
    table = Table(title=f"{found.oracle} on {found.judged}", title_justify="left")
    table.add_column("")
    table.add_column("n", justify="right")
    table.add_column("recall", justify="right")
    table.add_column("false positives", justify="right")
    for name, figures in found.by_category.items():
        recall, wrong = figures.get("recall"), figures.get("false_positive_rate")
        table.add_row(
            escape(name),
            str(int(figures["n"])),
            "" if recall is None else f"{recall:.1%}",
            "" if wrong is None else f"{wrong:.1%}",
        )
    if found.by_category:
        console.print(table)
    console.print(
        f"precision {found.precision:.3f}, recall {found.recall:.3f}, F1 {found.f1:.3f}, "
        f"calibration error {found.calibration_error:.3f}, "
        f"{found.latency_ms_per_pair:.2f} ms per pair"
    )
    if found.shadowed is not None and found.kept is not None:
        console.print(f"stale chunks removed {found.shadowed:.1%}, true ones kept {found.kept:.1%}")
    few = "" if found.enough else "too few pairs to rely on; "
    console.print(f"{few}[bold]{found.fitness}[/bold]: {MEANING[found.fitness]}")
