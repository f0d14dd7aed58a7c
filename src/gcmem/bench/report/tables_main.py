"""The tables of the paper's main text, from a run's outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gcmem.bench.data.build import DATASETS
from gcmem.bench.data.instances import Instance
from gcmem.bench.data.shipped import shipped
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
from gcmem.bench.report.describe import describe
from gcmem.bench.report.statistics import Comparison, compare_outcomes, false_discovery, stars
from gcmem.bench.report.table import NONE, Table, fixed, mean, percent, points, probability
from gcmem.bench.run.outcomes import Outcome, Run, answered

PAIRED = "Differences use the instances that both sides answered."
MEANS = f"Means over cells (readers and prompt modes) with equal weights. {PAIRED}"
LEAST_RECALL = 0.5
STAGES = ("retrieve", "conflict", "dominance", "read")
FACTORS = ("recency", "relevance", "usage", "stability")
GREEK = dict(zip(("alpha", "beta", "gamma", "delta"), FACTORS, strict=True)) | dict(
    zip("αβγδ", FACTORS, strict=True)
)


def baselines(run: Run) -> Table | None:
    """Accuracy of the baselines and gcmem in every retrieval cell, with ΔGC and its interval."""
    items = cell_outcomes(run, bag=False, need=("standard", "gcmem"))
    found = [(item, comparison) for item in items if (comparison := item.compared())]
    if not found:
        return None
    adjusted = false_discovery([comparison.test.p for _, comparison in found])
    paths = ("standard", "timestamp", "time-decay", "gcmem")
    rows = []
    for (item, comparison), p in zip(found, adjusted, strict=True):
        its = _mutation(item)
        rows.append(
            (
                *item.cell.labels,
                item.oracle,
                *(percent(item.accuracy(path)) for path in paths),
                *difference_cells(comparison),
                probability(p),
                stars(p),
                str(comparison.difference.pairs),
                str(item.errors(*paths)),
                *(its.get(path, NONE) for path in ("standard", "timestamp", "gcmem")),
            )
        )
    return Table(
        name="baselines",
        title="Accuracy of the baselines and gcmem",
        columns=(
            *("Dataset", "Retrieval", "k", "Reader", "Mode", "Oracle"),
            *(f"{path} %" for path in paths),
            *("ΔGC pp", "95 % interval", "p", "p (FDR)", "sig.", "n", "errors"),
            *("paper standard %", "paper timestamp %", "paper gcmem %"),
        ),
        rows=tuple(rows),
        note="ΔGC is gcmem minus standard: paired bootstrap, exact McNemar; a star means adjusted "
        f"p < 0.01. {PAIRED} The paper's figures are for its mutation benchmark "
        f"({paper.BASELINES.source}), one split per model, matched by the reader's name.",
    )


def _mutation(item: CellOutcomes) -> Mapping[str, str]:
    if item.cell.dataset != "mutation" or item.cell.stm != "off":
        return paper.ABSENT
    return paper.BASELINES.at(item.cell.model)


def difference_cells(comparison: Comparison | None) -> tuple[str, str, str]:
    """Returns a comparison's difference, interval and p-value, as table cells."""
    if comparison is None:
        return NONE, NONE, NONE
    found = comparison.difference
    interval = f"[{points(found.low)}, {points(found.high)}]"
    return points(found.difference), interval, probability(comparison.test.p)


def stm_lift(run: Run) -> Table | None:
    """Effect of the recency buffer on standard and gcmem, averaged over cells."""
    items = cell_outcomes(run, bag=False, need=("standard", "gcmem"))
    if not any(item.cell.retrieval == "paper" for item in items):
        return None
    rows = []
    for key, group in grouped(items, lambda i: (i.cell.dataset, *i.cell.retrieval_and_k, i.oracle)):
        its = paper.STM_LIFT.at(group[0].cell.dataset, group[0].cell.stm)
        rows.append(
            (
                *key,
                percent(mean_accuracy(group, "standard")),
                percent(mean_accuracy(group, "gcmem")),
                points(mean_delta(group)),
                str(len(group)),
                all_errors(group, "standard", "gcmem"),
                *(its.get(name, NONE) for name in ("standard", "gcmem", "delta")),
            )
        )
    return Table(
        name="stm-lift",
        title="Effect of the recency buffer (STM)",
        columns=(
            *("Dataset", "Retrieval", "k", "Oracle", "standard %", "gcmem %", "ΔGC pp"),
            *("cells", "errors", "paper standard %", "paper gcmem %", "paper ΔGC pp"),
        ),
        rows=tuple(rows),
        note=f"{MEANS} The paper's figures: {paper.STM_LIFT.source}, means over its models.",
    )


def efficacy(*, recall: float | None, delta: float | None) -> str:
    """Returns the paper's class of an oracle: "Optimal", "Marginal" or "Fails".

    No gain fails; a gain with a recall of at most 0.5 is marginal.
    """
    if recall is None or delta is None:
        return NONE
    if delta <= 0:
        return "Fails"
    return "Optimal" if recall > LEAST_RECALL else "Marginal"


def detectors(run: Run) -> Table | None:
    """Precision and recall of every oracle on the candidate sets, with its ΔGC."""
    items = [
        item
        for item in cell_outcomes(run, need=("gcmem",))
        if any(o.true_positives + o.false_negatives for o in answered(item.of("gcmem")))
    ]
    if not items:
        return None
    rows = []
    for key, group in grouped(items, lambda i: (i.oracle, i.cell.dataset, i.cell.setting)):
        outcomes = [o for item in group for o in answered(item.of("gcmem"))]
        precision, recall, f1 = _agreement(outcomes)
        delta = mean_delta(group)
        at = key[1] == "mutation" and key[2] == "retrieval"
        its = paper.DETECTORS.at(paper.model_name(key[0])) if at else paper.ABSENT
        names = ("precision", "recall", "f1", "delta", "efficacy")
        rows.append(
            (
                *(oracle_label(key[0]), *key[1:]),
                *(percent(precision), percent(recall), fixed(f1, 2), points(delta)),
                efficacy(recall=recall, delta=delta),
                all_errors(group, "gcmem"),
                *(its.get(name, NONE) for name in names),
            )
        )
    return Table(
        name="detectors",
        title="Oracles: agreement with gold, and effect",
        columns=(
            *("Oracle", "Dataset", "Setting", "precision %", "recall %", "F1", "ΔGC pp"),
            *("efficacy", "errors", "paper precision %", "paper recall %", "paper F1"),
            *("paper ΔGC pp", "paper efficacy"),
        ),
        rows=tuple(rows),
        note="Removed chunks are counted over all candidate sets. Optimal: recall over 50 % and a "
        "gain; Marginal: a gain at a recall of 50 % or less; Fails: no gain. The paper's figures: "
        f"{paper.DETECTORS.source}, where the model is both oracle and reader.",
    )


def _agreement(outcomes: Sequence[Outcome]) -> tuple[float | None, float | None, float | None]:
    hits = sum(o.true_positives for o in outcomes)
    claimed = hits + sum(o.false_positives for o in outcomes)
    gold = hits + sum(o.false_negatives for o in outcomes)
    precision = hits / claimed if claimed else None
    recall = hits / gold if gold else None
    return precision, recall, 2 * hits / (claimed + gold) if claimed + gold else None


def multi_factor(run: Run) -> Table | None:
    """Ablation: multi-factor scores and Φ_T, each compared with standard."""
    rows = []
    for cell, paths in cells(run.outcomes).items():
        variants = {path for path, _ in paths if path.startswith("multi-factor:")}
        for (path, oracle), outcomes in paths.items():
            if not variants or path not in variants | {"gcmem"}:
                continue
            standard = paths.get(("standard", ""), ())
            its = paper.MULTI_FACTOR.at(factors(path))
            rows.append(
                (
                    *cell.labels,
                    *(path, oracle_label(oracle), percent(accuracy(outcomes))),
                    *difference_cells(compare_outcomes(standard, outcomes)),
                    str(sum(bool(o.error) for o in outcomes)),
                    *(its.get("medium", NONE), its.get("large", NONE)),
                )
            )
    if not rows:
        return None
    return Table(
        name="multi-factor",
        title="Ablation: multi-factor scores",
        columns=(
            *("Dataset", "Retrieval", "k", "Reader", "Mode", "Variant", "Oracle", "accuracy %"),
            *("Δ to standard pp", "95 % interval", "p", "errors"),
            *("paper Medium %", "paper Large %"),
        ),
        rows=tuple(rows),
        note=f"{PAIRED} The paper's figures ({paper.MULTI_FACTOR.source}) are by variant, for "
        "o4-mini on its mutation benchmark; its timestamp-only variant is also next to gcmem.",
    )


def factors(path: str) -> str:
    """Returns a path's factors in the paper's notation; gcmem's factor is time."""
    if path == "gcmem":
        return FACTORS[0]
    names = path.partition(":")[2].lower().replace(" ", "").split("+")
    known = {GREEK.get(name, name) for name in names}
    if "full" in known:
        return "+".join(FACTORS)
    return "+".join(factor for factor in FACTORS if factor in known)


def bag_of_facts(run: Run) -> Table | None:
    """Means by reader with every chunk in context, largest gain first."""
    ranked = bag_means(run)
    if not ranked:
        return None
    rows = []
    for key, group in ranked:
        its = (
            paper.BAG_OF_FACTS.at(group[0].cell.model)
            if pooled_as_in_paper(group)
            else paper.ABSENT
        )
        rows.append((*key, *means_cells(group), *paper_cells(its)))
    return Table(
        name="bag-of-facts",
        title="Bag of facts: means by reader",
        columns=("Datasets", "Reader", "Oracle", *BAG_COLUMNS),
        rows=tuple(rows),
        note=f"{MEANS} The paper's figures: {paper.BAG_OF_FACTS.source}, Medium and Large pooled.",
    )


BAG_COLUMNS = (
    *("standard %", "gcmem %", "ΔGC pp", "shadows", "cells", "errors"),
    *("paper standard %", "paper gcmem %", "paper ΔGC pp", "paper shadows"),
)


def bag_means(run: Run) -> list[tuple[tuple[str, str, str], list[CellOutcomes]]]:
    """Returns the bag cells by datasets, reader and oracle, largest gain first."""
    items = cell_outcomes(run, bag=True, need=("standard", "gcmem"))
    found = list(grouped(items, lambda i: (i.cell.pool, i.cell.reader, i.oracle)))
    return sorted(found, key=lambda pair: (pair[0][0], -(mean_delta(pair[1]) or 0.0), pair[0]))


def means_cells(group: Sequence[CellOutcomes]) -> tuple[str, ...]:
    """Returns a group's standard, gcmem, ΔGC, shadows, cell count and errors, as table cells."""
    return (
        percent(mean_accuracy(group, "standard")),
        percent(mean_accuracy(group, "gcmem")),
        points(mean_delta(group)),
        fixed(mean_shadows(group), 2),
        str(len(group)),
        all_errors(group, "standard", "gcmem"),
    )


def paper_cells(its: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the paper's standard, gcmem, ΔGC and shadows, as table cells."""
    return tuple(its.get(name, NONE) for name in ("standard", "gcmem", "delta", "shadows"))


def latency(run: Run) -> Table | None:
    """Seconds per instance by stage, for every path."""
    timed: dict[tuple[str, ...], list[Outcome]] = {}
    stm: dict[tuple[str, ...], str] = {}
    for cell, paths in cells(run.outcomes).items():
        for (path, oracle), outcomes in paths.items():
            key = (cell.dataset, *cell.retrieval_and_k, path, oracle_label(oracle))
            timed.setdefault(key, []).extend(outcomes)
            stm[key] = cell.stm
    rows = [
        _latency_row(key, timed[key], stm[key])
        for key in sorted(timed)
        if any(o.timings_ms for o in answered(timed[key]))
    ]
    if not rows:
        return None
    return Table(
        name="latency",
        title="Seconds per instance by stage",
        columns=(
            *("Dataset", "Retrieval", "k", "Path", "Oracle"),
            *(f"{stage} s" for stage in STAGES),
            *("total s", "shadows", "n", "errors", "paper total s", "paper total s (appendix)"),
            *("paper shadows", "paper shadows (appendix)"),
        ),
        rows=tuple(rows),
        note="Means over all answers of a path. The paper gives one figure per dataset and buffer, "
        f"shown next to gcmem; its two tables ({paper.LATENCY.source} and "
        f"{paper.LATENCY_APPENDIX.source}) disagree for Large with the buffer.",
    )


def _latency_row(key: tuple[str, ...], every: Sequence[Outcome], stm: str) -> tuple[str, ...]:
    outcomes = [o for o in answered(every) if o.timings_ms]
    gcmem = key[3] == "gcmem"
    its = [
        table.at(key[0], stm) if gcmem else paper.ABSENT
        for table in (paper.LATENCY, paper.LATENCY_APPENDIX)
    ]
    return (
        *key,
        *(fixed(mean([o.timings_ms.get(s, 0.0) / 1000 for o in outcomes]), 3) for s in STAGES),
        fixed(mean([o.seconds for o in outcomes]), 3),
        fixed(mean([o.shadows for o in outcomes]), 2) if gcmem else NONE,
        *(str(len(outcomes)), str(sum(bool(o.error) for o in every))),
        *(figures.get("instance_s", NONE) for figures in its),
        *(figures.get("shadows", NONE) for figures in its),
    )


def datasets(run: Run) -> Table | None:
    """Statistics of the run's shipped datasets."""
    names = {outcome.condition.dataset for outcome in run.outcomes}
    return datasets_table({name: shipped(name) for name in DATASETS if name in names})


def datasets_table(instances: Mapping[str, Sequence[Instance]]) -> Table | None:
    """Statistics of any datasets, by name."""
    rows = []
    for name in sorted(name for name in instances if instances[name]):
        found, its = describe(name, instances[name]), paper.DATASETS.at(name)
        rows.append(
            (
                *(name, str(found.instances), str(found.families), str(found.severities)),
                *(f"{m:.1f} ({sd:.1f})" for m, sd in (found.old, found.new, found.others)),
                *(f"{found.old_and_new:,}", f"{found.turns:,}"),
                *(its.get(key, NONE) for key in ("n", "families", "severities")),
                *(
                    f"{its[key]} ({its[f'{key}_sd']})" if its else NONE
                    for key in ("old", "new", "others")
                ),
                its.get("turns", NONE),
            )
        )
    if not rows:
        return None
    counted = ("N", "families", "severities", "old (SD)", "new (SD)", "others (SD)")
    return Table(
        name="datasets",
        title="Datasets",
        columns=(
            *("Dataset", *counted, "old + new", "turns"),
            *(f"paper {column}" for column in (*counted, "turns")),
        ),
        rows=tuple(rows),
        note="Turns per instance, means with standard deviations; distractors and invariants are "
        f"counted together. The paper's figures: {paper.DATASETS.source}.",
    )
