"""gcmem bench expansion"""

from __future__ import annotations

from rich.table import Table

from gcmem.bench.expansion import expansion as measure
from gcmem.cli.bench.sources import Dataset, instances_of
from gcmem.cli.options import AsJson, K
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.defaults import default_encoder


def expansion(dataset: Dataset, k: K = 10, as_json: AsJson = False) -> None:
    """Measure what a second wording of the question adds to retrieval."""
    with progress_bar("embedding") as advance:
        rows = measure(default_encoder(), instances_of(dataset), k=k, progress=advance)
    if as_json:
        print_json(rows)
        return
    table = Table(title=f"{dataset}, the {k} best", title_justify="left")
    for column in ("queries", "new state found", "on topic"):
        table.add_column(column, justify="left" if column == "queries" else "right")
    for row in rows:
        table.add_row(row.form, f"{row.found_new:.1%}", f"{row.on_topic:.1%}")
    console.print(table)
