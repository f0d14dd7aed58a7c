"""gcmem bench thresholds"""

from __future__ import annotations

from rich.table import Table

from gcmem.bench.data.streams import Texts
from gcmem.bench.theory.thresholds import STEPS, threshold_rows
from gcmem.cli.bench.sources import Dataset, instances_of
from gcmem.cli.options import AsJson
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.defaults import default_encoder


def thresholds(dataset: Dataset = "chat-medium", as_json: AsJson = False) -> None:
    """Measure how good the conflict model must be, by precision and recall.

    Degrades a perfect oracle step by step, over bags of facts, with the majority reader.
    """
    with progress_bar("judging") as advance:
        rows = threshold_rows(Texts(default_encoder()), instances_of(dataset), progress=advance)
    if as_json:
        print_json(rows)
        return
    found = {(row.precision, row.recall): row for row in rows}
    for title, value in (("accuracy", "accuracy"), ("still-true chunks kept", "keep_rate")):
        table = Table(title=f"{title}, {dataset}", title_justify="left")
        table.add_column("precision")
        for recall in STEPS:
            table.add_column(f"recall {recall:g}", justify="right")
        for precision in STEPS:
            cells = [getattr(found[precision, recall], value) for recall in STEPS]
            table.add_row(f"{precision:g}", *(f"{cell:.1%}" for cell in cells))
        console.print(table)
