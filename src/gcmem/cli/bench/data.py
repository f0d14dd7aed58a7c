"""gcmem bench data"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from gcmem.bench.data.build import DATASETS, SEED, build
from gcmem.bench.data.generate import generate_pool
from gcmem.bench.data.instances import dump
from gcmem.bench.data.labelled import pairs as labelled_pairs
from gcmem.bench.data.labelled import sets, write_jsonl
from gcmem.bench.data.leakage import leakage as rate
from gcmem.bench.data.pool import families, load_families
from gcmem.bench.report.describe import describe, draw_dataset
from gcmem.cli.bench.sources import Dataset, Out, instances_of
from gcmem.cli.options import AsJson
from gcmem.cli.output import console, print_json, progress_bar, to_json
from gcmem.llm import OpenAIChat

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
    pool: Annotated[
        Path | None, typer.Option(help="Draw from this pool instead of the shipped one.")
    ] = None,
) -> None:
    """Build a dataset from the pool; the default seed gives the shipped dataset."""
    text = dump(build(dataset, seed=seed, pool=load_families(pool) if pool else None))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, "utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    console.print(f"{text.count(chr(10))} instances written to {out}, sha256 {digest}")


@app.command()
def stats(
    dataset: Annotated[
        list[str] | None, typer.Argument(help="Datasets or files; default: all shipped datasets.")
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
    """Measure how often turns name a state, and how well wording separates old from new."""
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
    """Write a dataset's labelled pairs and candidate sets, for `gcmem qualify`."""
    instances = instances_of(dataset)
    name = Path(dataset).stem
    for kind, rows in (("pairs", labelled_pairs(instances, seed=seed)), ("sets", sets(instances))):
        path = out / f"{name}_{kind}.jsonl"
        console.print(f"{write_jsonl(rows, path)} {kind} written to {path}")


@app.command()
def generate(
    spec: Annotated[
        Path,
        typer.Argument(help="JSON or JSONL of families: family, attribute, states, questions."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The pool to write, JSONL.")],
    model: Annotated[str, typer.Option(help="The model that writes the lines.")],
    rater: Annotated[
        str, typer.Option(help="The model that rates the lines; preferably a different one.")
    ],
    base_url: Annotated[
        str | None, typer.Option(envvar="OPENAI_BASE_URL", help="The endpoint of both models.")
    ] = None,
    per_state: Annotated[int, typer.Option(min=1, help="Lines to generate per state.")] = 110,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder for cached replies; default: next to --out. Delete its subfolder "
            "malformed to retry unreadable replies."
        ),
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(min=1, help="Stop after spending this many tokens.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Generate your own pool with a language model; a second model rates each line.

    Rerun the same command after an interruption: cached replies are not paid for again. Build a
    dataset from the pool with `gcmem bench data build --pool`.
    """
    key = os.environ.get("OPENAI_API_KEY")
    with (
        OpenAIChat(model=model, base_url=base_url, api_key=key, max_tokens=1024) as writer,
        OpenAIChat(model=rater, base_url=base_url, api_key=key) as judge,
        progress_bar("writing") as advance,
    ):
        report = generate_pool(
            spec,
            generator=writer,
            rater=judge,
            out=out,
            per_state=per_state,
            cache=cache or out.with_suffix(".replies"),
            budget_tokens=budget_tokens,
            progress=advance,
        )
    if as_json:
        print_json({**to_json(report), "accepted": report.accepted, "complete": report.complete})
        return
    if model == rater:
        console.print("The model rated its own lines: expect lenient ratings.")
    console.print(
        f"{report.accepted} lines accepted, {sum(report.rejected.values())} rejected, "
        f"written to {out} ({'complete' if report.complete else 'incomplete: ' + report.ended})"
    )
