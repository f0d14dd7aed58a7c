"""gcmem bench theory"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from gcmem.bench.data.streams import Style
from gcmem.bench.theory.report import write_theory
from gcmem.bench.theory.theorems import LENGTHS, recall_rows, stale_rows
from gcmem.cli.bench.sources import Out
from gcmem.cli.output import console, progress_bar
from gcmem.defaults import default_encoder, default_reader


def theory(
    out: Out = Path("bench-theory"),
    longest: Annotated[
        int, typer.Option(min=1, help="The longest history, in chunks of the old state.")
    ] = LENGTHS[-1],
    seed: Annotated[int, typer.Option(help="Decides the sentences and their order.")] = 0,
) -> None:
    """Run the paper's theorems as experiments: recall of the new state, and the stale vote.

    Uses streams of real sentences in which one fact changes once, with N = 1 to --longest old
    chunks. Facts are either stated or implied by behaviour. Takes minutes.
    """
    encoder = default_encoder()
    lengths = [n for n in LENGTHS if n <= longest]
    recall, standing, stale = [], [], []
    for style in get_args(Style):
        with progress_bar(f"recall, {style}") as advance:
            found, still = recall_rows(
                encoder, style=style, lengths=lengths, seed=seed, progress=advance
            )
        recall += found
        standing += still
        stale += stale_rows(encoder, style=style, seed=seed, reader=default_reader(encoder))
    written = write_theory(out, recall, standing, stale, encoder=encoder.id)
    console.print(Path(out / "theory.md").read_text("utf-8"), markup=False)
    console.print(f"written: {', '.join(str(path) for path in written)}")
