"""What the bench commands take as a dataset: a name of ours, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcmem.bench.build import DATASETS
from gcmem.bench.instances import Instance, load
from gcmem.bench.shipped import shipped

Dataset = Annotated[
    str, typer.Argument(help=f"{', '.join(DATASETS)}, or a JSONL file of instances.")
]
Out = Annotated[Path, typer.Option("--out", help="The folder to write to.")]


def instances_of(dataset: str) -> tuple[Instance, ...]:
    """Returns the instances of a shipped dataset, or those of a file."""
    return shipped(dataset) if dataset in DATASETS else load(Path(dataset))
