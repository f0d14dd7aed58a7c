"""The tables of `gcmem bench retrieval`: recall by row, and by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from gcmem.bench.report.table import Table, fixed, percent
from gcmem.bench.run.retrieval import (
    CUTS,
    FUSED,
    MAIN_CUT,
    PLAIN_DENSE,
    PLAIN_WORDS,
    RERANKED,
    Asked,
)

SAME_SAMPLE = "fused, same questions"
"""The row to compare re-ranking with, if only some questions were re-ranked."""
ORDER = ("dense", "lexical", FUSED, SAME_SAMPLE, RERANKED, PLAIN_WORDS, PLAIN_DENSE)
NOTE = (
    "Recall and hits in percent. A turn counts once, even if it was split. "
    f"'{PLAIN_WORDS}' and '{PLAIN_DENSE}' are yardsticks outside the product, over texts without "
    "speaker and date. ms is the median time of a search."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The results of one row: shares from 0 to 1, over n questions."""

    row: str
    n: int
    recall: Mapping[int, float]
    hit: float
    p50_ms: float
    categories: Mapping[str, tuple[int, float]]
    """By category: the number of questions, and the recall at the main cut."""


def figures(asked: Sequence[Asked]) -> tuple[Figures, ...]:
    """Returns the results by row; a sample that was re-ranked is also shown as it was before."""
    rows: dict[str, list[Asked]] = {}
    for one in asked:
        rows.setdefault(one.row, []).append(one)
    sampled = {one.question for one in rows.get(RERANKED, ())}
    fused = rows.get(FUSED, [])
    if 0 < len(sampled) < len(fused):
        rows[SAME_SAMPLE] = [one for one in fused if one.question in sampled]
    return tuple(_figures(row, rows[row]) for row in ORDER if row in rows)


def _figures(row: str, asked: Sequence[Asked]) -> Figures:
    place = CUTS.index(MAIN_CUT)
    by_category: dict[str, list[float]] = {}
    for one in asked:
        by_category.setdefault(one.category, []).append(one.recall[place])
    return Figures(
        row=row,
        n=len(asked),
        recall={k: mean(one.recall[n] for one in asked) for n, k in enumerate(CUTS)},
        hit=mean(one.hit for one in asked),
        p50_ms=median(one.ms for one in asked),
        categories={name: (len(by), mean(by)) for name, by in sorted(by_category.items())},
    )


def retrieval_table(dataset: str, found: Sequence[Figures]) -> Table:
    """Returns the main table of a dataset."""
    return Table(
        name=f"retrieval-{dataset}",
        title=f"{dataset}: evidence found",
        columns=("", *(f"recall@{k}" for k in CUTS), f"hit@{MAIN_CUT}", "n", "ms"),
        rows=tuple(
            (row.row, *map(percent, (*row.recall.values(), row.hit)), str(row.n),
             fixed(row.p50_ms, 1))
            for row in found
        ),
        note=NOTE,
    )  # fmt: skip


def category_table(dataset: str, found: Sequence[Figures]) -> Table:
    """Returns the recall by category; a cell with fewer questions than the others says so."""
    counts = {
        name: max(row.categories[name][0] for row in found if name in row.categories)
        for name in sorted({name for row in found for name in row.categories})
    }

    def cell(row: Figures, name: str) -> str:
        n, share = row.categories.get(name, (0, None))
        return f"{percent(share)} (n {n})" if 0 < n < counts[name] else percent(share)

    return Table(
        name=f"retrieval-categories-{dataset}",
        title=f"{dataset}: recall@{MAIN_CUT} by category",
        columns=("", "n", *(row.row for row in found)),
        rows=tuple(
            (name, str(n), *(cell(row, name) for row in found)) for name, n in counts.items()
        ),
    )
