"""Every figure of an evaluation run, drawn from its outcomes; captions are in `captions`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gcmem.bench.report import charts
from gcmem.bench.report.figures import draw
from gcmem.bench.report.lift import (
    BAG,
    GCMEM,
    PATHS,
    SETTING_FILLS,
    Pair,
    accuracy,
    arrangement,
    arrangements,
    group,
    headline,
    interval,
    main_oracle,
    mean,
    mean_lift,
    pairs,
)
from gcmem.bench.report.plots_kappa import plot_keep, plot_oracles
from gcmem.bench.report.plots_sweep import plot_k, plot_ratio
from gcmem.bench.run.outcomes import Condition, Run

KINDS = ("old", "new", "distractor")


def plot_stm_effect(run: Run, folder: Path) -> list[Path]:
    """Draws the accuracy without and with the recency buffer, for each reader and path."""
    kept = [o for o in headline(run) if _dense(o.condition) and o.condition.path in PATHS]
    found = group(kept, lambda o: (o.condition.reader, o.condition.path, o.condition.stm))
    readers = list(dict.fromkeys(o.condition.reader for o in kept))
    series: dict[str, list[tuple[float, float] | None]] = {}
    for path, name in PATHS.items():
        ends = [(found.get((r, path, False)), found.get((r, path, True))) for r in readers]
        values = [(accuracy(off), accuracy(on)) if off and on else None for off, on in ends]
        if any(values):
            series[name] = values
    if not series:
        return []
    x = f"accuracy{_kappa(run)}"
    paint = partial(charts.dumbbells, names=readers, series=series, x=x, ends=("STM off", "STM on"))
    return draw(folder, "stm_effect", paint, figsize=charts.figure_size(len(readers), each=0.5))


def plot_shadows_lift(run: Run, folder: Path) -> list[Path]:
    """Draws the shadows removed against ΔGC, one point per cell of the grid."""
    points = _cell_points(run, lambda own: statistics.fmean(p.gcmem.shadows for p in own))
    return _draw_points(run, folder, "shadows_lift", points, "shadows removed per query (chunks)")


def plot_standard_lift(run: Run, folder: Path) -> list[Path]:
    """Draws standard RAG's accuracy against ΔGC, one point per cell of the grid."""
    points = _cell_points(run, lambda own: 100 * accuracy([p.standard for p in own]))
    return _draw_points(run, folder, "standard_lift", points, "accuracy of standard RAG (%)")


def plot_recall(run: Run, folder: Path) -> list[Path]:
    """Draws the share of old, new and distractor turns that were retrieved."""
    kept = [o for o in headline(run) if o.condition.setting != "bag"]
    # Every path and reader gets the same candidates: one outcome per instance is enough.
    single = {(o.condition.dataset, o.condition.retrieval, o.instance): o for o in kept}
    series: dict[str, list[float | None]] = {}
    for name in arrangements(kept):
        own = [o for o in single.values() if arrangement(o.condition) == name]
        values = [mean(getattr(o, f"recall_{kind}") for o in own) for kind in KINDS]
        if any(value is not None for value in values):
            series[name] = values
    if not series:
        return []
    rows = ("old state", "new state", "distractor")
    return draw(folder, "recall", partial(_paint_shares, names=rows, series=series, x="recall"))


def plot_heatmap(run: Run, folder: Path) -> list[Path]:
    """Draws ΔGC for each reader and dataset, with and without the recency buffer."""
    found = pairs(headline(run))
    if not found:
        return []
    columns = [
        f"{dataset}, {name}"
        for dataset in dict.fromkeys(pair.condition.dataset for pair in found)
        for name in arrangements(p.gcmem for p in found if p.condition.dataset == dataset)
    ]
    cells = group(
        found,
        lambda p: (p.condition.reader, f"{p.condition.dataset}, {arrangement(p.condition)}"),
    )
    readers = list(dict.fromkeys(reader for reader, _ in cells))
    paint = partial(
        charts.heatmap,
        rows=readers,
        columns=columns,
        values={cell: mean_lift(own) for cell, own in cells.items()},
        unit=_lift_label(run, lines=2),
    )
    size = (max(4.6, 0.62 * len(columns) + 2.6), max(2.6, 0.36 * len(readers) + 1.6))
    return draw(folder, "lift_heatmap", paint, figsize=size)


def plot_forest(run: Run, folder: Path) -> list[Path]:
    """Draws the bootstrap interval of ΔGC for each reader, dataset and arrangement."""
    cells = _cells(pairs(headline(run)))
    if not cells:
        return []
    rows = []
    for (reader, dataset, name), own in cells.items():
        found = interval(own)
        rows.append((f"{reader} · {dataset} · {name}", found.low, found.mean, found.high))
    paint = partial(_paint_forest, rows=rows, x=_lift_label(run))
    return draw(folder, "lift_forest", paint, figsize=charts.figure_size(len(rows), each=0.22))


def _paint_forest(axes: Any, rows: Sequence[tuple[str, float, float, float]], x: str) -> None:
    charts.forest(axes, rows, x=x)
    axes.set_yticks(range(len(rows)), [name.replace("$", r"\$") for name, *_ in rows], fontsize=7.5)


def plot_families(run: Run, folder: Path) -> list[Path]:
    """Draws ΔGC for each family of entities, with its bootstrap interval."""
    found = group(pairs(headline(run)), lambda pair: pair.gcmem.family)
    measured = {name: interval(own) for name, own in found.items()}
    ranked = sorted(measured, key=lambda name: (-measured[name].mean, name))
    if not ranked:
        return []
    paint = partial(
        _paint_lifts,
        names=[f"{name} (n = {measured[name].instances})" for name in ranked],
        series={"ΔGC": [measured[name].mean for name in ranked]},
        errors={"ΔGC": [measured[name].spread for name in ranked]},
        x=_lift_label(run),
    )
    return draw(folder, "lift_families", paint, figsize=charts.figure_size(len(ranked)))


def plot_bag(run: Run, folder: Path) -> list[Path]:
    """Draws each reader's accuracy with every fact in the context, by path."""
    kept = [o for o in headline(run) if o.condition.setting == "bag" and o.condition.path in PATHS]
    lifts = group(pairs(kept), lambda pair: pair.condition.reader)
    if not lifts:
        return []
    means = {reader: mean_lift(own) for reader, own in lifts.items()}
    ranked = sorted(means, key=lambda reader: (-means[reader], reader))
    found = group(kept, lambda o: (o.condition.reader, o.condition.path))
    series: dict[str, list[float | None]] = {
        name: [accuracy(found[r, path]) if (r, path) in found else None for r in ranked]
        for path, name in PATHS.items()
        if any(path == o.condition.path for o in kept)
    }
    names = [f"{reader} (ΔGC {means[reader]:+.1f})" for reader in ranked]
    paint = partial(_paint_shares, names=names, series=series, x=f"accuracy{_kappa(run)}")
    return draw(folder, "bag_readers", paint, figsize=charts.figure_size(len(ranked), each=0.5))


def plot_settings(run: Run, folder: Path) -> list[Path]:
    """Draws ΔGC for each reader and for all readers, by arrangement."""
    found = pairs(headline(run))
    columns = arrangements(pair.gcmem for pair in found)
    if len(columns) < 2:
        return []
    cells = group(found, lambda pair: (pair.condition.reader, arrangement(pair.condition)))
    pooled = group(found, lambda pair: ("all readers", arrangement(pair.condition)))
    readers = list(dict.fromkeys(reader for reader, _ in cells))
    rows = [*readers, "all readers"] if len(readers) > 1 else readers
    measured = {cell: interval(own) for cell, own in (pooled | cells).items()}
    paint = partial(
        _paint_lifts,
        names=rows,
        series={
            c: [m.mean if (m := measured.get((r, c))) else None for r in rows] for c in columns
        },
        errors={
            c: [m.spread if (m := measured.get((r, c))) else None for r in rows] for c in columns
        },
        x=_lift_label(run),
    )
    size = charts.figure_size(len(rows), each=0.14 * len(columns) + 0.1)
    return draw(folder, "settings", paint, figsize=size)


def plot_shadows(run: Run, folder: Path) -> list[Path]:
    """Draws how many shadows were removed per query, one histogram per arrangement."""
    kept = [o for o in headline(run) if o.condition.path == GCMEM]
    series = {
        name: [o.shadows for o in kept if arrangement(o.condition) == name]
        for name in arrangements(kept)
    }
    if not series:
        return []
    paint = partial(
        charts.histograms,
        series=series,
        x="shadows removed per query (chunks)",
        y="share of queries",
    )
    return draw(folder, "shadow_distribution", paint)


def _paint_shares(
    axes: Any, names: Sequence[str], series: Mapping[str, Sequence[float | None]], x: str
) -> None:
    charts.bars(axes, names, series, x=x)
    axes.set_xlim(0, 1.03)
    charts.per_cent(axes.xaxis)


def _paint_lifts(
    axes: Any,
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    errors: Mapping[str, Sequence[tuple[float, float] | None]],
    x: str,
) -> None:
    charts.bars(axes, names, series, x=x, errors=errors)
    charts.signed(axes.xaxis)


def _paint_points(
    axes: Any, groups: Mapping[str, Sequence[tuple[float, float, bool]]], x: str, y: str
) -> None:
    charts.scatter(axes, groups, x=x, y=y, fills=SETTING_FILLS)
    axes.axhline(0, color="black", linewidth=0.9, linestyle="--")
    charts.signed(axes.yaxis)


def _draw_points(
    run: Run,
    folder: Path,
    name: str,
    points: Mapping[str, Sequence[tuple[float, float, bool]]],
    x: str,
) -> list[Path]:
    paint = partial(_paint_points, groups=points, x=x, y=_lift_label(run, lines=2))
    return draw(folder, name, paint) if points else []


def _cell_points(
    run: Run, across: Callable[[Sequence[Pair]], float]
) -> dict[str, list[tuple[float, float, bool]]]:
    points: dict[str, list[tuple[float, float, bool]]] = {}
    for (reader, _, name), own in _cells(pairs(headline(run))).items():
        spot = (across(own), mean_lift(own), name == BAG)
        points.setdefault(reader, []).append(spot)
    return points


def _cells(found: Sequence[Pair]) -> dict[tuple[str, str, str], list[Pair]]:
    """Groups pairs by reader, dataset and arrangement, in their fixed orders."""
    order = arrangements(pair.gcmem for pair in found)
    readers = list(dict.fromkeys(pair.condition.reader for pair in found))
    cells = group(
        found, lambda p: (p.condition.reader, p.condition.dataset, arrangement(p.condition))
    )
    keys = sorted(cells, key=lambda key: (readers.index(key[0]), key[1], order.index(key[2])))
    return {key: cells[key] for key in keys}


def _dense(condition: Condition) -> bool:
    return condition.setting != "bag" and condition.retrieval in ("dense", "paper")


def _kappa(run: Run) -> str:
    oracle = main_oracle(run)
    return f" (κ: {oracle})".replace("$", r"\$") if oracle else ""


def _lift_label(run: Run, *, lines: int = 1) -> str:
    return f"ΔGC, {charts.POINTS}" + ("\n" if lines > 1 else "") + _kappa(run)


PLOTS: Mapping[str, Callable[[Run, Path], list[Path]]] = {
    "stm_effect": plot_stm_effect,
    "shadows_lift": plot_shadows_lift,
    "oracles": plot_oracles,
    "recall": plot_recall,
    "lift_heatmap": plot_heatmap,
    "lift_forest": plot_forest,
    "lift_families": plot_families,
    "bag_readers": plot_bag,
    "settings": plot_settings,
    "shadow_distribution": plot_shadows,
    "standard_lift": plot_standard_lift,
    "accuracy_ratio": plot_ratio,
    "accuracy_k": plot_k,
    "keep_recall": plot_keep,
}
"""The function that draws each figure, by name; it returns no paths if the run has no data."""
