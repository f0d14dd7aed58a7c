"""gcmem bench data"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from gcmem.bench.build import DATASETS, SEED, build
from gcmem.bench.describe import describe, draw_dataset
from gcmem.bench.instances import dump
from gcmem.bench.labelled import pairs as labelled_pairs
from gcmem.bench.labelled import sets, write_jsonl
from gcmem.bench.leakage import leakage as rate
from gcmem.bench.pool import families
from gcmem.cli.bench.sources import Dataset, Out, instances_of
from gcmem.cli.options import AsJson
from gcmem.cli.output import console, print_json

app = typer.Typer(
    name="data",
    help="Build, describe and check the datasets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Seed = Annotated[int, typer.Option(help="The same seed gives the same instances.")]


@app.command("build")
def build_command(
    dataset: Annotated[str, typer.Argument(help=", ".join(DATASETS))],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    seed: Seed = SEED,
) -> None:
    """Build a dataset from the pool; with the default seed, exactly the one that is shipped."""
    text = dump(build(dataset, seed=seed))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, "utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    console.print(f"{text.count(chr(10))} instances written to {out}, sha256 {digest}")


@app.command()
def stats(
    dataset: Annotated[
        list[str] | None, typer.Argument(help="Datasets or files; default: all that are shipped.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Draw the figures into this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the paper's table of statistics, and draw its figures."""
    found = []
    for name in dataset or DATASETS:
        instances = instances_of(name)
        found.append(describe(Path(name).stem, instances))
        if out is not None:
            draw_dataset(Path(name).stem, instances, out)
    if as_json:
        print_json(found)
        return
    table = Table(title="Datasets", title_justify="left")
    for column in (
        "",
        "instances",
        "types",
        "tiers",
        "n_old",
        "m_new",
        "others",
        "old+new",
        "turns",
    ):
        table.add_column(column, justify="left" if not column else "right")
    for row in found:
        spread = [f"{mean:.1f} ({sd:.1f})" for mean, sd in (row.old, row.new, row.others)]
        counts = [str(n) for n in (row.instances, row.families, row.severities)]
        table.add_row(row.dataset, *counts, *spread, f"{row.old_and_new:,}", f"{row.turns:,}")
    console.print(table)


@app.command()
def leakage(dataset: Dataset, as_json: AsJson = False) -> None:
    """Rate how much a dataset gives away: states named, old and new told apart by words."""
    found = rate(instances_of(dataset), families())
    if as_json:
        print_json(found)
        return
    table = Table(title=f"Leakage of {dataset}", title_justify="left")
    for column in ("family", "turns", "state named", "old/new told apart (chance: 50 %)"):
        table.add_column(column, justify="left" if column == "family" else "right")
    for row in found:
        table.add_row(row.family, str(row.turns), f"{row.named:.1%}", f"{row.told_apart:.1%}")
    console.print(table)


@app.command()
def pairs(dataset: Dataset, out: Out = Path("bench-pairs"), seed: Seed = 0) -> None:
    """Write labelled pairs and whole sets of a dataset, for `gcmem qualify`."""
    instances = instances_of(dataset)
    name = Path(dataset).stem
    for kind, rows in (("pairs", labelled_pairs(instances, seed=seed)), ("sets", sets(instances))):
        path = out / f"{name}_{kind}.jsonl"
        console.print(f"{write_jsonl(rows, path)} {kind} written to {path}")
