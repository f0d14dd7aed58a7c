"""The bag-of-facts tables of the paper's appendix: every chunk is a candidate."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gcmem.bench.report import paper
from gcmem.bench.report.cells import (
    CellOutcomes,
    all_errors,
    cell_outcomes,
    grouped,
    mean_accuracy,
    mean_delta,
    mean_shadows,
    pooled_as_in_paper,
)
from gcmem.bench.report.table import NONE, Table, fixed, percent, points
from gcmem.bench.report.tables_appendix import PATHS, rows_or_none
from gcmem.bench.report.tables_main import (
    BAG_COLUMNS,
    MEANS,
    PAIRED,
    bag_means,
    means_cells,
    paper_cells,
)
from gcmem.bench.run.outcomes import Run

BUFFERS = ("off", "on", "bag")


def bag_headline(run: Run) -> Table | None:
    """Means over readers by dataset, with the standard deviation between readers."""
    rows = []
    items = cell_outcomes(run, bag=True, need=("standard", "gcmem"))
    for key, group in grouped(items, lambda i: (i.cell.dataset, i.oracle)):
        its = paper.BAG_HEADLINE.at(key[0])
        readers = [found for _, found in grouped(group, lambda i: (i.cell.reader,))]
        names = ("standard", "standard_sd", "timestamp", "gcmem", "delta", "delta_sd")
        rows.append(
            (
                *key,
                percent(mean_accuracy(group, "standard")),
                percent(_deviation([mean_accuracy(found, "standard") for found in readers])),
                percent(mean_accuracy(group, "timestamp")),
                percent(mean_accuracy(group, "gcmem")),
                points(mean_delta(group)),
                percent(_deviation([mean_delta(found) for found in readers])),
                str(len(readers)),
                all_errors(group, *PATHS),
                *(its.get(name, NONE) for name in names),
            )
        )
    figures = ("standard %", "SD", "timestamp %", "gcmem %", "ΔGC pp", "SD (ΔGC)")
    return rows_or_none(
        name="bag-headline",
        title="Bag of facts: headline",
        columns=(
            "Dataset",
            "Oracle",
            *figures,
            "readers",
            "errors",
            *(f"paper {f}" for f in figures),
        ),
        rows=rows,
        note=f"{MEANS} SD is between readers. The paper's figures: {paper.BAG_HEADLINE.source}, "
        "seven models.",
    )


def _deviation(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.stdev(known) if len(known) > 1 else None


def bag_per_model(run: Run) -> Table | None:
    """Figures for every reader and dataset, averaged over prompt modes."""
    rows = []
    items = cell_outcomes(run, bag=True, need=("standard", "gcmem"))
    for key, group in grouped(items, lambda i: (i.cell.reader, i.cell.dataset, i.oracle)):
        its = paper.BAG_PER_MODEL.at(group[0].cell.model, key[1])
        rows.append(
            (
                *key,
                *(percent(mean_accuracy(group, path)) for path in PATHS),
                points(mean_delta(group)),
                fixed(mean_shadows(group), 2),
                str(len({o.instance for item in group for o in item.of("gcmem")})),
                all_errors(group, *PATHS),
                *(its.get(name, NONE) for name in (*PATHS, "delta", "shadows", "n")),
            )
        )
    figures = (*(f"{path} %" for path in PATHS), "ΔGC pp", "shadows", "n")
    return rows_or_none(
        name="bag-per-model",
        title="Bag of facts: every reader and dataset",
        columns=(
            "Reader",
            "Dataset",
            "Oracle",
            *figures,
            "errors",
            *(f"paper {f}" for f in figures),
        ),
        rows=rows,
        note=f"Means over prompt modes. {PAIRED} The paper's figures: "
        f"{paper.BAG_PER_MODEL.source}, by the reader's name.",
    )


def bag_ranking(run: Run) -> Table | None:
    """Readers ranked by ΔGC."""
    rows: list[tuple[str, ...]] = []
    ranks: dict[str, int] = {}
    for key, group in bag_means(run):
        rank = ranks[key[0]] = ranks.get(key[0], 0) + 1
        its = paper.ABSENT
        if pooled_as_in_paper(group):
            its = paper.BAG_RANKING.at(group[0].cell.model)
        figures = paper_cells(its)
        rows.append(
            (key[0], str(rank), *key[1:], *means_cells(group), *figures, its.get("rank", NONE))
        )
    return rows_or_none(
        name="bag-ranking",
        title="Bag of facts: readers ranked by ΔGC",
        columns=("Datasets", "Rank", "Reader", "Oracle", *BAG_COLUMNS, "paper rank"),
        rows=rows,
        note=f"{MEANS} Ranked within the datasets; chat is Medium and Large together. The paper's "
        f"figures: {paper.BAG_RANKING.source}.",
    )


def bag_across(run: Run) -> Table | None:
    """ΔGC without the recency buffer, with it, and with every chunk."""
    rows = []
    items = [i for i in cell_outcomes(run, need=("standard", "gcmem")) if i.cell.bag or i.cell.stm]
    for key, group in grouped(items, lambda i: (i.cell.dataset, i.cell.reader, i.oracle)):
        found = {buffer: [item for item in group if _buffer(item) == buffer] for buffer in BUFFERS}
        if not found["bag"] or not (found["off"] or found["on"]):
            continue
        its = paper.ABSENT
        if key[0] == "chat-medium":
            its = paper.BAG_ACROSS.at(group[0].cell.model)
        deltas = (points(mean_delta(found[buffer])) for buffer in BUFFERS)
        errors = all_errors(group, "standard", "gcmem")
        rows.append((*key, *deltas, errors, *(its.get(buffer, NONE) for buffer in BUFFERS)))
    figures = ("dense ΔGC pp", "paper ΔGC pp", "bag ΔGC pp")
    return rows_or_none(
        name="bag-across",
        title="ΔGC across settings",
        columns=(
            "Dataset",
            "Reader",
            "Oracle",
            *figures,
            "errors",
            *(f"paper {f}" for f in figures),
        ),
        rows=rows,
        note=f"Means over prompt modes, retrieval at k = {paper.K}. {PAIRED} The paper's figures: "
        f"{paper.BAG_ACROSS.source}, on Medium.",
    )


def _buffer(item: CellOutcomes) -> str:
    return "bag" if item.cell.bag else item.cell.stm
