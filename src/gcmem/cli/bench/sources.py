"""The dataset argument of the bench commands: a shipped name, NAME=PATH, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcmem.bench.data.build import DATASETS
from gcmem.bench.data.datasets import LOADERS, load_dataset
from gcmem.bench.data.instances import Instance, load
from gcmem.bench.data.shipped import shipped
from gcmem.bench.run.memories import MakeOracle
from gcmem.cli.oracles import oracle_named
from gcmem.protocols import ConflictOracle, ScoreCache

Dataset = Annotated[
    str,
    typer.Argument(
        help=f"{', '.join(DATASETS)}; NAME=PATH for {', '.join(LOADERS)}; or a JSONL file."
    ),
]
Out = Annotated[Path, typer.Option("--out", help="The folder to write to.")]


def instances_of(dataset: str) -> tuple[Instance, ...]:
    """Returns the instances of a shipped dataset, a third-party one (NAME=PATH), or a file."""
    name, _, path = dataset.partition("=")
    if path and name in LOADERS:
        return load_dataset(name, Path(path))
    return shipped(dataset) if dataset in DATASETS else load(Path(dataset))


def named_oracle(base_url: str | None) -> MakeOracle:
    """Returns a function that makes oracles by name; oracles that score pairs use its cache."""

    def make(name: str, cache: ScoreCache | None) -> ConflictOracle:
        return oracle_named(name, base_url=base_url, cache=cache)

    return make
