"""Describes a dataset: the paper's statistics and three figures."""

from __future__ import annotations

import statistics
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gcmem.bench.data.instances import Instance
from gcmem.bench.report.figures import COLOURS, HATCHES, draw

KIND_COLOURS = {
    "old": COLOURS[1],
    "new": COLOURS[2],
    "distractor": COLOURS[7],
    "invariant": COLOURS[0],
    "other": COLOURS[3],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Statistics of a dataset: counts, and means with standard deviations."""

    dataset: str
    instances: int
    families: int
    severities: int
    old: tuple[float, float]
    new: tuple[float, float]
    others: tuple[float, float]
    old_and_new: int
    turns: int
    by_role: dict[str, int]
    by_subset: dict[str, int]


def describe(dataset: str, instances: Sequence[Instance]) -> Description:
    """Returns a dataset's statistics; as in the paper, distractors include invariants."""
    old = [len(i.of_kind("old")) for i in instances]
    new = [len(i.of_kind("new")) for i in instances]
    others = [len(i.of_kind("distractor", "invariant")) for i in instances]
    return Description(
        dataset=dataset,
        instances=len(instances),
        families=len({i.family for i in instances}),
        severities=len({i.severity for i in instances}),
        old=_spread(old),
        new=_spread(new),
        others=_spread(others),
        old_and_new=sum(old) + sum(new),
        turns=sum(len(i.turns) for i in instances),
        by_role=dict(Counter(t.role for i in instances for t in i.turns).most_common()),
        by_subset=dict(Counter(i.subset for i in instances)),
    )


def _spread(counts: Sequence[int]) -> tuple[float, float]:
    deviation = statistics.stdev(counts) if len(counts) > 1 else 0.0
    return round(statistics.mean(counts), 1), round(deviation, 1)


def draw_dataset(dataset: str, instances: Sequence[Instance], folder: Path) -> list[Path]:
    """Draws the entity types by severity, the turns by kind, and one example instance."""
    shown = sorted(instances, key=lambda i: len(i.turns))[len(instances) // 2]
    height = 0.24 * len(shown.turns) + 1
    return [
        *draw(folder, f"{dataset}_entities", partial(_entities, instances=instances)),
        *draw(folder, f"{dataset}_turns", partial(_turns, instances=instances)),
        *draw(
            folder,
            f"{dataset}_instance",
            partial(_instance, instance=shown),
            figsize=(8, min(height, 24)),
        ),
    ]


def _entities(axes: Any, instances: Sequence[Instance]) -> None:
    counts = Counter((i.family, i.severity) for i in instances)
    names = sorted({i.family for i in instances})
    bottom = [0] * len(names)
    for number, severity in enumerate(sorted({i.severity for i in instances})):
        heights = [counts[name, severity] for name in names]
        axes.bar(
            names, heights, bottom=bottom, label=f"severity {severity}",
            color=COLOURS[number], hatch=HATCHES[number % len(HATCHES)], edgecolor="white",
        )  # fmt: skip
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    axes.tick_params(axis="x", rotation=60)
    axes.set_ylabel("instances")
    axes.legend(fontsize=7.5)


def _turns(axes: Any, instances: Sequence[Instance]) -> None:
    ordered = sorted(instances, key=lambda i: len(i.turns))
    bottom = [0] * len(ordered)
    for number, (kind, colour) in enumerate(KIND_COLOURS.items()):
        heights = [sum(t.kind == kind for t in i.turns) for i in ordered]
        if any(heights):
            axes.bar(
                range(len(ordered)), heights, bottom=bottom, width=1.0, label=kind, color=colour,
                hatch=HATCHES[number % len(HATCHES)], edgecolor="white", linewidth=0.2,
            )  # fmt: skip
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    axes.set_xlabel("instances, by length")
    axes.set_ylabel("turns")
    axes.legend(fontsize=7.5)


def _instance(axes: Any, instance: Instance) -> None:
    axes.set_axis_off()
    axes.set_title(f"{instance.question}  →  {instance.answer}", loc="left", fontsize=9)
    turns = [t for t in instance.turns if t.at is not None]
    for row, turn in enumerate(sorted(turns, key=lambda t: str(t.at))):
        y = 1 - (row + 1) / (len(turns) + 1)
        axes.text(
            0, y, f"{turn.at:%d %b}  {turn.kind:<10}", family="monospace", fontsize=6,
            color=KIND_COLOURS[turn.kind], transform=axes.transAxes,
        )  # fmt: skip
        line = textwrap.shorten(f"{turn.speaker}: {turn.text}", 110, placeholder="…")
        axes.text(
            0.2, y, line.replace("$", r"\$"), fontsize=6, color=KIND_COLOURS[turn.kind],
            transform=axes.transAxes,
        )  # fmt: skip
