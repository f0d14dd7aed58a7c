"""Compares two runs on their common conditions and instances."""

from __future__ import annotations

from gcmem.bench.report.cells import accuracy, cells, oracle_label
from gcmem.bench.report.default_settings import defaults_of, mark_defaults
from gcmem.bench.report.statistics import compare_outcomes, false_discovery, stars
from gcmem.bench.report.table import Table, percent, probability
from gcmem.bench.report.tables_main import difference_cells
from gcmem.bench.run.outcomes import Run


def compare_runs(a: Run, b: Run) -> Table | None:
    """Returns the comparison of B with A by condition, or None without common answers."""
    left, right = cells(a.outcomes), cells(b.outcomes)
    found = []
    for cell in sorted(left.keys() & right.keys()):
        for path_and_oracle in sorted(left[cell].keys() & right[cell].keys()):
            both = left[cell][path_and_oracle], right[cell][path_and_oracle]
            comparison = compare_outcomes(*both)
            if comparison is not None:
                found.append((cell, path_and_oracle, both, comparison))
    if not found:
        return None
    adjusted = false_discovery([comparison.test.p for *_, comparison in found])
    rows = []
    for (cell, (path, oracle), both, comparison), p in zip(found, adjusted, strict=True):
        errors = [sum(bool(o.error) for o in outcomes) for outcomes in both]
        rows.append(
            (
                *(*cell.labels, path, oracle_label(oracle)),
                *(percent(accuracy(outcomes)) for outcomes in both),
                *difference_cells(comparison),
                *(probability(p), stars(p), str(comparison.difference.pairs)),
                *(str(count) for count in errors),
            )
        )
    table = Table(
        name="compare",
        title="Two runs compared",
        columns=(
            *("Dataset", "Retrieval", "k", "Reader", "Mode", "Path", "Oracle", "A %", "B %"),
            *("B − A pp", "95 % interval", "p", "p (FDR)", "sig.", "n", "errors A", "errors B"),
        ),
        rows=tuple(rows),
        note=_note(a, b, len(found)),
    )
    return mark_defaults(table, defaults_of(b))


def _note(a: Run, b: Run, shared: int) -> str:
    left, right = ({outcome.condition for outcome in run.outcomes} for run in (a, b))
    return (
        f"{shared} conditions compared; {len(left - right)} are in A only, {len(right - left)} "
        "in B only. Differences are over the instances answered in both: paired bootstrap, exact "
        "McNemar; a star is an adjusted p < 0.01."
    )
