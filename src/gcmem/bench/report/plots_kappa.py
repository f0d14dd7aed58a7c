"""The figures about κ: each oracle's benefit, and the true chunks it removes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gcmem.bench.report import charts
from gcmem.bench.report.figures import COLOURS, draw, legend_above
from gcmem.bench.report.lift import (
    BAG,
    GCMEM,
    SETTING_FILLS,
    accuracy,
    arrangement,
    group,
    instance_key,
    mean,
    pairs,
)
from gcmem.bench.run.outcomes import Outcome, Run, answered

UNNAMED = "(unnamed)"


def plot_oracles(run: Run, folder: Path) -> list[Path]:
    """Draws GC-Mem's accuracy and κ's F1 by oracle, on the instances that all oracles judged."""
    plain = [pair for pair in pairs(run.outcomes) if pair.gcmem.ratio is None]
    by_oracle = group(plain, lambda pair: pair.condition.oracle)
    if not by_oracle:
        return []
    shared = set.intersection(*({instance_key(p.gcmem) for p in own} for own in by_oracle.values()))
    if not shared:
        return []
    asked = {
        name: [p.gcmem for p in own if instance_key(p.gcmem) in shared]
        for name, own in by_oracle.items()
    }
    # Each answer of standard RAG occurs once per oracle, which doesn't change the mean.
    baseline = accuracy([pair.standard for pair in plain if instance_key(pair.gcmem) in shared])
    ranked = sorted(asked, key=lambda name: -accuracy(asked[name]))
    paint = partial(
        _paint_oracles,
        asked={name: asked[name] for name in ranked},
        baseline=baseline,
        answers=len(shared),
    )
    return draw(folder, "oracles", paint, figsize=charts.figure_size(len(ranked), each=0.45))


def _paint_oracles(
    axes: Any, asked: Mapping[str, Sequence[Outcome]], baseline: float, answers: int
) -> None:
    names = [name or UNNAMED for name in asked]
    accuracies = {"accuracy": [accuracy(own) for own in asked.values()]}
    charts.bars(axes, names, accuracies, x=f"share (n = {answers} answers each)")
    for row, own in enumerate(asked.values()):
        f1 = _f1(own)
        if f1 is not None:
            axes.plot(
                f1, row, marker="D", color=COLOURS[1], markeredgecolor="white", linestyle="",
                markersize=7, label="" if row else "F1 of κ",
            )  # fmt: skip
    axes.axvline(
        baseline, color="black", linestyle="--", linewidth=1, label="accuracy of standard RAG"
    )
    axes.set_xlim(0, 1.03)
    charts.per_cent(axes.xaxis)
    legend_above(axes)


def plot_keep(run: Run, folder: Path) -> list[Path]:
    """Draws the share of true chunks kept against κ's recall, one point per dataset and κ."""
    asked = [o for o in answered(run.outcomes) if o.condition.path == GCMEM and o.ratio is None]
    cells = group(
        asked, lambda o: (o.condition.oracle, o.condition.dataset, arrangement(o.condition))
    )
    points: dict[str, list[tuple[float, float, bool]]] = {}
    for (oracle, _, name), own in cells.items():
        kept, gold = mean(o.keep_rate for o in own), _stale_candidates(own)
        if kept is not None and gold:
            recall = sum(o.true_positives for o in own) / gold
            spot = (recall, kept, name == BAG)
            points.setdefault(oracle or UNNAMED, []).append(spot)
    paint = partial(_paint_keep, groups=points)
    return draw(folder, "keep_recall", paint) if points else []


def _paint_keep(axes: Any, groups: Mapping[str, Sequence[tuple[float, float, bool]]]) -> None:
    charts.scatter(
        axes, groups, x="recall of κ (stale chunks removed)", y="keep rate (true chunks kept)",
        fills=SETTING_FILLS,
    )  # fmt: skip
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    charts.per_cent(axes.xaxis)
    charts.per_cent(axes.yaxis)


def _stale_candidates(outcomes: Sequence[Outcome]) -> int:
    return sum(o.true_positives + o.false_negatives for o in outcomes)


def _f1(outcomes: Sequence[Outcome]) -> float | None:
    hits = 2 * sum(o.true_positives for o in outcomes)
    misses = sum(o.false_positives + o.false_negatives for o in outcomes)
    return hits / (hits + misses) if hits + misses else None
