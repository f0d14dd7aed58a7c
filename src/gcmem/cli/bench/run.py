"""gcmem bench run"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gcmem.bench.data.build import DATASETS
from gcmem.bench.data.shipped import shipped_hash
from gcmem.bench.data.streams import Texts
from gcmem.bench.run.grid import PATHS, PRESETS, change, load_grid, preset
from gcmem.bench.run.outcomes import Outcome, Run
from gcmem.bench.run.product import describe_defaults, product_defaults
from gcmem.bench.run.readers import shared_reader
from gcmem.bench.run.runner import run_grid
from gcmem.cli.bench.sources import instances_of, named_oracle
from gcmem.cli.output import console, progress_bar
from gcmem.defaults import default_encoder

Many = list[str] | None


def run(
    out: Annotated[Path, typer.Option("--out", help="The run's folder; an existing run resumes.")],
    preset_name: Annotated[
        str | None, typer.Option("--preset", help=f"{', '.join(PRESETS)}; default: quick.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A grid in YAML.")] = None,
    dataset: Annotated[
        Many,
        typer.Option(help=f"{', '.join(DATASETS)}, NAME=PATH, or a JSONL file; repeatable."),
    ] = None,
    reader: Annotated[Many, typer.Option(help="majority, local or llm:MODEL; repeatable.")] = None,
    oracle: Annotated[
        Many,
        typer.Option(help="local, gold, nli:FOLDER, llm:MODEL or llm-pairwise:MODEL; repeatable."),
    ] = None,
    path: Annotated[Many, typer.Option(help=f"{', '.join(PATHS)}; repeatable.")] = None,
    k: Annotated[
        list[int] | None, typer.Option("-k", help="Chunks to retrieve; repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum instances per dataset.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed recorded with the run.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Instances in parallel; for endpoints.")] = 1,
    base_url: Annotated[
        str | None, typer.Option(envvar="OPENAI_BASE_URL", help="The endpoint of llm:MODEL.")
    ] = None,
) -> None:
    """Run the evaluation: every path of an instance gets the same frozen candidate set.

    Rerun the same command to resume after an interruption; model replies are cached. Create the
    tables and figures with `gcmem bench report`.
    """
    grid = load_grid(config) if config else preset(preset_name or "quick")
    if config and preset_name:
        raise typer.BadParameter("pass --config or --preset, not both; the file can name a preset")
    said = {
        "datasets": dataset, "readers": reader, "oracles": oracle, "paths": path, "ks": k,
        "limit": limit, "seed": seed,
    }  # fmt: skip
    grid = change(grid, {name: value for name, value in said.items() if value is not None})
    texts = Texts(default_encoder())
    key = os.environ.get("OPENAI_API_KEY")
    readers = {
        name: shared_reader(name, texts, cache=out / "replies", base_url=base_url, api_key=key)
        for name in grid.readers
    }

    with progress_bar("running") as advance:
        done = run_grid(
            grid,
            out=out,
            load=instances_of,
            texts=texts,
            readers=readers,
            make_oracle=named_oracle(base_url),
            jobs=jobs,
            hashes={name: shipped_hash(name) for name in grid.datasets if name in DATASETS},
            progress=advance,
        )
    _summary(done)
    console.print(f"product defaults: {describe_defaults(product_defaults())}")
    console.print(f"results in {out}; next: gcmem bench report {out}")


def _summary(done: Run) -> None:
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in done.outcomes:
        c = outcome.condition
        groups.setdefault(
            (c.dataset, c.setting, c.retrieval, c.reader, c.path, c.oracle), []
        ).append(outcome)
    for key, outcomes in sorted(groups.items()):
        right = [o.correct for o in outcomes if not o.error]
        kept = [o.keep_rate for o in outcomes if o.keep_rate is not None]
        shown = " ".join(part for part in key if part)
        rate = f"{sum(right) / len(right):.1%}" if right else "no answer"
        more = f", kept {sum(kept) / len(kept):.1%}" if kept else ""
        errors = sum(bool(o.error) for o in outcomes)
        console.print(f"{rate:>8}  {shown}{more}" + (f", {errors} errors" if errors else ""))
