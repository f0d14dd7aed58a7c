"""gcmem bench report, gcmem bench compare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcmem.bench.data.streams import Texts
from gcmem.bench.report.compare import compare_runs
from gcmem.bench.report.tables import to_markdown
from gcmem.bench.report.writing import write_report
from gcmem.bench.run.outcomes import load_run
from gcmem.cli.bench.sources import instances_of, named_oracle
from gcmem.cli.output import console
from gcmem.defaults import default_encoder
from gcmem.errors import InvalidInputError

RunFolder = Annotated[Path, typer.Argument(help="A folder written by `gcmem bench run`.")]


def report(
    run: RunFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The folder to write to; default: the run's folder."),
    ] = None,
) -> None:
    """Write all tables (Markdown, CSV, LaTeX), all figures and one self-contained HTML page."""
    folder = out or run
    written = write_report(
        load_run(run),
        folder,
        load=instances_of,
        texts=Texts(default_encoder()),
        make_oracle=named_oracle(None),
    )
    console.print(f"{len(written)} files written; open {folder / 'report.html'}")


def compare(a: RunFolder, b: RunFolder) -> None:
    """Compare two runs condition by condition, with paired statistics."""
    table = compare_runs(load_run(a), load_run(b))
    if table is None:
        raise InvalidInputError(f"{a} and {b} have no condition and instance in common")
    console.print(to_markdown(table), markup=False, soft_wrap=True)
