"""The retrieval tables of the paper's appendix, and tables that only gcmem reports."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.bench.report import paper
from gcmem.bench.report.cells import (
    CellOutcomes,
    accuracy,
    all_errors,
    cell_outcomes,
    cells,
    grouped,
    mean_accuracy,
    mean_delta,
    mean_shadows,
    oracle_label,
    pooled_as_in_paper,
)
from gcmem.bench.report.statistics import false_discovery, stars
from gcmem.bench.report.table import NONE, Table, fixed, mean, percent, points, probability
from gcmem.bench.report.tables_main import MEANS, PAIRED, difference_cells
from gcmem.bench.run.outcomes import Outcome, Run, answered

CELL = ("Dataset", "Retrieval", "k", "Reader", "Mode")
PATHS = ("standard", "timestamp", "gcmem")
MODES = ("forced-choice", "allow-unclear")
KINDS = ("old", "new", "distractor")


def headline(run: Run) -> Table | None:
    """Accuracy of standard, timestamp and gcmem by dataset and retrieval, averaged over cells."""
    items = cell_outcomes(run, bag=False, need=PATHS)
    rows = []
    for key, group in grouped(items, lambda i: (i.cell.dataset, *i.cell.retrieval_and_k, i.oracle)):
        its = paper.HEADLINE.at(group[0].cell.dataset, group[0].cell.stm)
        rows.append(
            (
                *key,
                *(percent(mean_accuracy(group, path)) for path in PATHS),
                points(mean_delta(group)),
                str(len(group)),
                all_errors(group, *PATHS),
                *(its.get(name, NONE) for name in (*PATHS, "delta")),
            )
        )
    return rows_or_none(
        name="headline",
        title="Headline accuracy",
        columns=(
            *("Dataset", "Retrieval", "k", "Oracle", *(f"{path} %" for path in PATHS)),
            *("ΔGC pp", "cells", "errors"),
            *(*(f"paper {path} %" for path in PATHS), "paper ΔGC pp"),
        ),
        rows=rows,
        note=f"{MEANS} The paper's figures: {paper.HEADLINE.source}.",
    )


def conditions(run: Run) -> Table | None:
    """Every cell and oracle: accuracy, recall, shadows, errors and time."""
    rows = [_condition_row(item) for item in cell_outcomes(run)]
    return rows_or_none(
        name="conditions",
        title="Every condition",
        columns=(
            *(*CELL, "Oracle", *(f"{path} %" for path in PATHS), "ΔGC pp"),
            *(f"recall {kind} %" for kind in KINDS),
            *("shadows", "n", "errors", "gcmem s"),
            *(*(f"paper {path} %" for path in PATHS), "paper ΔGC pp"),
            *(f"paper recall {kind} %" for kind in KINDS),
            *("paper shadows", "paper n", "paper errors", "paper wall s"),
        ),
        rows=rows,
        note="n is the number of instances, errors the failed outcomes of the three paths. "
        f"{PAIRED} The paper's figures: {paper.CONDITIONS.source}, by the reader's name; its "
        f"seconds are per cell. For the bag: {paper.BAG_PER_MODEL.source}.",
    )


def _condition_row(item: CellOutcomes) -> tuple[str, ...]:
    cell = item.cell
    outcomes = [o for path in PATHS for o in item.of(path)]
    its = paper.CONDITIONS.at(cell.dataset, cell.stm, cell.model, cell.mode)
    if cell.bag:
        its = paper.BAG_PER_MODEL.at(cell.model, cell.dataset)
    names = (*PATHS, "delta", *KINDS, "shadows", "n", "errors", "wall_s")
    return (
        *(*cell.labels, oracle_label(item.oracle)),
        *(percent(item.accuracy(path)) for path in PATHS),
        points(item.delta()),
        *recall_cells(outcomes),
        fixed(item.shadows(), 2),
        str(len({o.instance for o in outcomes})),
        str(item.errors(*PATHS)),
        fixed(mean([o.seconds for o in answered(item.of("gcmem")) if o.timings_ms]), 3),
        *(its.get(name, NONE) for name in names),
    )


def recall_cells(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Returns the mean retrieval recall of old, new and distractor turns, as table cells."""
    found = answered(outcomes)
    old = [o.recall_old for o in found if o.recall_old is not None]
    new = [o.recall_new for o in found if o.recall_new is not None]
    others = [o.recall_distractor for o in found if o.recall_distractor is not None]
    return tuple(percent(mean(values)) for values in (old, new, others))


def prompt_modes(run: Run) -> Table | None:
    """ΔGC under the two prompt modes, by retrieval and reader."""
    items = cell_outcomes(run, bag=False, need=("standard", "gcmem"))
    if not {item.cell.mode for item in items}.issuperset(MODES):
        return None
    rows = []
    for key, group in grouped(
        items, lambda i: (i.cell.pool, *i.cell.retrieval_and_k, i.cell.reader, i.oracle)
    ):
        cell = group[0].cell
        its = paper.MODES.at(cell.stm, cell.model) if pooled_as_in_paper(group) else paper.ABSENT
        by_mode = [[item for item in group if item.cell.mode == mode] for mode in MODES]
        rows.append(
            (
                *key,
                *(points(mean_delta(found)) for found in by_mode),
                str(len({item.cell.dataset for item in group})),
                all_errors(group, "standard", "gcmem"),
                *(its.get(mode, NONE) for mode in MODES),
            )
        )
    return rows_or_none(
        name="prompt-modes",
        title="Prompt modes: ΔGC",
        columns=(
            *("Datasets", "Retrieval", "k", "Reader", "Oracle"),
            *(*(f"{mode} ΔGC pp" for mode in MODES), "datasets", "errors"),
            *(f"paper {mode} ΔGC pp" for mode in MODES),
        ),
        rows=rows,
        note=f"Means over datasets; chat is Medium and Large together. {PAIRED} The paper's "
        f"figures: {paper.MODES.source}.",
    )


def retrieval_recall(run: Run) -> Table | None:
    """Share of the old, new and distractor turns that reached the candidate set."""
    found: dict[tuple[str, ...], list[Outcome]] = {}
    stm: dict[tuple[str, ...], str] = {}
    for cell, paths in cells(run.outcomes).items():
        if not cell.bag:
            key: tuple[str, ...] = (cell.dataset, *cell.retrieval_and_k)
            stm[key] = cell.stm
            found.setdefault(key, []).extend(
                o
                for outcomes in paths.values()
                for o in outcomes
                if o.error or o.recall_new is not None
            )
    rows = []
    for key in sorted(key for key in found if answered(found[key])):
        its = paper.RECALL.at(key[0], stm[key])
        number = str(len({o.instance for o in answered(found[key])}))
        errors = str(len(found[key]) - len(answered(found[key])))
        kinds = (its.get(kind, NONE) for kind in KINDS)
        rows.append((*key, *recall_cells(found[key]), number, errors, *kinds))
    return rows_or_none(
        name="retrieval-recall",
        title="Retrieval recall",
        columns=(
            *("Dataset", "Retrieval", "k", *(f"{kind} %" for kind in KINDS), "n", "errors"),
            *(f"paper {kind} %" for kind in KINDS),
        ),
        rows=rows,
        note="Share of an instance's turns of each kind among its candidates; means over all "
        f"answers. The paper's figures: {paper.RECALL.source}.",
    )


def shadows(run: Run) -> Table | None:
    """Chunks that gcmem removed per instance."""
    rows = []
    for key, group in grouped(
        cell_outcomes(run, need=("gcmem",)),
        lambda i: (i.cell.pool, *i.cell.retrieval_and_k, i.cell.reader, i.cell.mode, i.oracle),
    ):
        cell = group[0].cell
        its = paper.ABSENT
        if pooled_as_in_paper(group):
            its = paper.SHADOWS.at(cell.stm, cell.model, cell.mode)
        datasets = str(len({item.cell.dataset for item in group}))
        counts = (datasets, all_errors(group, "gcmem"))
        rows.append((*key, fixed(mean_shadows(group), 2), *counts, its.get("shadows", NONE)))
    return rows_or_none(
        name="shadows",
        title="Shadows removed per instance",
        columns=(
            *("Datasets", "Retrieval", "k", "Reader", "Mode", "Oracle"),
            *("shadows", "datasets", "errors", "paper shadows"),
        ),
        rows=rows,
        note="Means over datasets; chat is Medium and Large together. The paper's figures: "
        f"{paper.SHADOWS.source}.",
    )


def head_to_head(run: Run) -> Table | None:
    """Timestamp re-ranking compared with gcmem, instance by instance."""
    items = cell_outcomes(run, need=("timestamp", "gcmem"))
    found = [(item, c) for item in items if (c := item.compared(base="timestamp"))]
    adjusted = false_discovery([comparison.test.p for _, comparison in found])
    rows = []
    for (item, comparison), p in zip(found, adjusted, strict=True):
        cell, test = item.cell, comparison.test
        its = paper.ABSENT
        if cell.stm == "on":
            its = paper.HEAD_TO_HEAD.at(cell.dataset, cell.model, cell.mode)
        ahead = test.only_b - test.only_a
        rows.append(
            (
                *(*cell.labels, item.oracle),
                *(percent(item.accuracy(path)) for path in PATHS),
                *(str(test.only_b), str(test.only_a), str(test.ties)),
                *difference_cells(comparison),
                *(probability(p), stars(p)),
                "gcmem" if ahead > 0 else "timestamp" if ahead < 0 else "tie",
                str(item.errors("timestamp", "gcmem")),
                *(its.get(name, NONE) for name in (*PATHS, "winner", "gap")),
            )
        )
    return rows_or_none(
        name="head-to-head",
        title="Timestamp re-ranking against gcmem",
        columns=(
            *(*CELL, "Oracle", *(f"{path} %" for path in PATHS), "wins", "losses", "ties"),
            *("difference pp", "95 % interval", "p", "p (FDR)", "sig.", "ahead", "errors"),
            *(*(f"paper {path} %" for path in PATHS), "paper winner", "paper gap pp"),
        ),
        rows=rows,
        note="A win: gcmem is right and timestamp is not. The difference is gcmem minus timestamp; "
        f"a star means adjusted p < 0.01. {PAIRED} The paper's figures: "
        f"{paper.HEAD_TO_HEAD.source}, with the buffer on; its gap is the winner's lead.",
    )


def sweep(run: Run) -> Table | None:
    """Accuracy by the ratio of old to new chunks."""
    swept = [o for o in run.outcomes if o.ratio is not None]
    ratios = sorted({o.ratio for o in swept if o.ratio is not None})
    rows = []
    for cell, paths in cells(swept).items():
        for (path, oracle), outcomes in paths.items():
            by_ratio = (accuracy([o for o in outcomes if o.ratio == r]) for r in ratios)
            rows.append(
                (
                    *(*cell.labels, path, oracle_label(oracle)),
                    *(percent(share) for share in by_ratio),
                    *(percent(accuracy(outcomes)), str(len(answered(outcomes)))),
                    str(len(outcomes) - len(answered(outcomes))),
                )
            )
    return rows_or_none(
        name="sweep",
        title="Accuracy by N:M",
        columns=(
            *(*CELL, "Path", "Oracle", *(f"{ratio}:1 %" for ratio in ratios)),
            *("all %", "n", "errors"),
        ),
        rows=rows,
        note="N old chunks per M new chunks. The paper has no such table.",
    )


def keep_rate(run: Run) -> Table | None:
    """Shares of chunks kept and removed, and kinds of wrong answers."""
    rows = []
    for cell, paths in cells(run.outcomes).items():
        for (path, oracle), outcomes in paths.items():
            found = answered(outcomes)
            kept = [o.keep_rate for o in found if o.keep_rate is not None]
            gone = [o.stale_removed for o in found if o.stale_removed is not None]
            rows.append(
                (
                    *(*cell.labels, path, oracle_label(oracle)),
                    *(percent(mean(kept)), percent(mean(gone))),
                    percent(mean([o.stale for o in found])),
                    percent(mean([o.unclear for o in found])),
                    *(str(len(found)), str(len(outcomes) - len(found))),
                )
            )
    return rows_or_none(
        name="keep-rate",
        title="Chunks kept and removed, and wrong answers",
        columns=(
            *(*CELL, "Path", "Oracle", "still true kept %", "stale removed %"),
            *("stale answers %", "abstentions %", "n", "errors"),
        ),
        rows=rows,
        note="Kept and removed are shares of an instance's candidates, averaged over "
        "instances. The paper has no such table.",
    )


def rows_or_none(
    *, name: str, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], note: str
) -> Table | None:
    """Returns the table, or None if it has no rows."""
    if not rows:
        return None
    return Table(name=name, title=title, columns=columns, rows=tuple(rows), note=note)
