"""The figures of the sweeps: accuracy against N:M and against k."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gcmem.bench.report.figures import draw, legend_above, lines
from gcmem.bench.report.lift import PATHS, accuracy, arrangement, arrangements, group, one_oracle
from gcmem.bench.run.outcomes import Condition, Outcome, Run


def plot_ratio(run: Run, folder: Path) -> list[Path]:
    """Draws the accuracy of each path against N:M, the old chunks per new chunk."""
    swept = [o for o in one_oracle(run) if o.ratio is not None]
    series = _curves(swept, lambda outcome: float(outcome.ratio or 0))
    paint = partial(_paint_curves, series=series, x="old chunks per new chunk, N:M", log_x=True)
    return draw(folder, "accuracy_ratio", paint) if series else []


def plot_k(run: Run, folder: Path) -> list[Path]:
    """Draws the accuracy of each path against k, over the cells that were run at every k."""
    plain = [o for o in one_oracle(run) if o.ratio is None and o.condition.setting != "bag"]
    cells = group(plain, _without_k)
    widths = {cell: len({o.condition.k for o in own}) for cell, own in cells.items()}
    most = max(widths.values(), default=0)
    if most < 2:
        return []
    swept = [o for cell, own in cells.items() if widths[cell] == most for o in own]
    series = _curves(swept, lambda outcome: float(outcome.condition.k))
    paint = partial(_paint_curves, series=series, x="candidates retrieved, k (chunks)", log_x=False)
    return draw(folder, "accuracy_k", paint)


def _without_k(outcome: Outcome) -> Condition:
    return replace(outcome.condition, k=0)


def _paint_curves(
    axes: Any, series: Mapping[str, Sequence[tuple[float, float]]], x: str, log_x: bool
) -> None:
    lines(axes, series, x=x, y="accuracy", log_x=log_x)
    places = sorted({across for points in series.values() for across, _ in points})
    axes.minorticks_off()
    axes.set_xticks(places, [f"{place:g}" for place in places])
    legend_above(axes)


def _curves(
    swept: Sequence[Outcome], across: Callable[[Outcome], float]
) -> dict[str, list[tuple[float, float]]]:
    """Returns (x, accuracy) points, one series per path and, if several, per arrangement."""
    several = len(arrangements(swept)) > 1
    named = group(
        swept,
        lambda o: (
            PATHS.get(o.condition.path, o.condition.path)
            + (f", {arrangement(o.condition)}" if several else "")
        ),
    )
    return {
        name: [(place, accuracy(at)) for place, at in sorted(group(own, across).items())]
        for name, own in named.items()
    }
