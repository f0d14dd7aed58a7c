"""Says in a table which rows use settings other than the product's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gcmem.bench.report.table import NONE, Table
from gcmem.bench.run.outcomes import Run
from gcmem.bench.run.product import describe_defaults, product_defaults

FIELDS = {
    "Setting": "setting",
    "Retrieval": "retrieval",
    "k": "k",
    "Reader": "reader",
    "Mode": "mode",
    "Path": "path",
    "Variant": "path",
    "Oracle": "oracle",
}
"""The columns that name a setting, with the field of a condition."""
COLUMN = "Not default"


def defaults_of(run: Run) -> Mapping[str, Any]:
    """Returns the product's defaults when the run was made; today's if it does not record them."""
    found: Mapping[str, Any] = run.about.get("product_defaults") or product_defaults()
    return found


def mark_defaults(table: Table, defaults: Mapping[str, Any]) -> Table:
    """Adds a column with the settings of a row that are not the product's defaults, and a note.

    A table without a column for settings is returned as it is.
    """
    places = {place: name for place, name in enumerate(table.columns) if name in FIELDS}
    if not places:
        return table
    # Tables of bags of facts have no column for the retrieval: there is none.
    always = ["Retrieval"] if table.name.startswith("bag-") else []
    end = max(places) + 1
    rows = []
    for row in table.rows:
        other = always + [
            name
            for place, name in places.items()
            if row[place] not in (str(defaults[FIELDS[name]]), NONE)
        ]
        rows.append((*row[:end], ", ".join(other) or NONE, *row[end:]))
    note = (
        f"{COLUMN}: the settings with a column that differ from the product's. "
        f"Product defaults: {describe_defaults(defaults)}."
    )
    return replace(
        table,
        columns=(*table.columns[:end], COLUMN, *table.columns[end:]),
        rows=tuple(rows),
        note=f"{table.note} {note}".strip(),
    )
