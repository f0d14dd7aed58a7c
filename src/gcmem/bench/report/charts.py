"""Chart types for a run's figures: bars, dumbbells, scatter, intervals, heat map, histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gcmem.bench.report.figures import (
    COLOURS,
    DASHES,
    HATCHES,
    MARKERS,
    legend_above,
    series_style,
    wrap_label,
)

POINTS = "percentage points"
ROW_INCHES = 0.3


def figure_size(rows: int, *, each: float = ROW_INCHES) -> tuple[float, float]:
    """Returns the size of a figure with `rows` rows of labels."""
    return 6.4, max(2.2, each * rows + 1.1)


def per_cent(axis: Any) -> None:
    """Formats an axis of shares as percentages."""
    axis.set_major_formatter(lambda value, _: f"{value:.0%}")


def signed(axis: Any) -> None:
    """Formats an axis of differences with signs."""
    axis.set_major_formatter(lambda value, _: f"{value:+.0f}" if value else "0")


def rows_of(axes: Any, names: Sequence[str]) -> None:
    """Labels the rows of a horizontal chart, first row on top."""
    axes.set_yticks(range(len(names)), [wrap_label(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def bars(
    axes: Any,
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    x: str,
    errors: Mapping[str, Sequence[tuple[float, float] | None]] | None = None,
) -> None:
    """Draws horizontal bars, one group per name; series differ in colour and hatch.

    None leaves a gap; `errors` are the lengths below and above the value.
    """
    height = 0.8 / len(series)
    for number, (label, values) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * height
        shown = [(row, value) for row, value in enumerate(values) if value is not None]
        axes.barh(
            [row + shift for row, _ in shown], [value for _, value in shown], height * 0.92,
            label=wrap_label(label), color=COLOURS[number % len(COLOURS)],
            hatch=HATCHES[number % len(HATCHES)], edgecolor="white", linewidth=0.4,
        )  # fmt: skip
        for row, value in shown:
            spread = errors[label][row] if errors else None
            if spread is not None:
                axes.errorbar(
                    value, row + shift, xerr=[[spread[0]], [spread[1]]], fmt="none",
                    ecolor="black", elinewidth=0.9, capsize=2,
                )  # fmt: skip
    axes.axvline(0, color="black", linewidth=0.8)
    rows_of(axes, names)
    axes.set_xlabel(x)
    if len(series) > 1:
        legend_above(axes, columns=4)


def dumbbells(
    axes: Any,
    names: Sequence[str],
    series: Mapping[str, Sequence[tuple[float, float] | None]],
    *,
    x: str,
    ends: tuple[str, str],
) -> None:
    """Draws two joined points per name and series: the first open, the second filled.

    Pairs of one name are stacked; each series has its own marker and colour.
    """
    handles = []
    for number, (label, values) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * 0.8 / len(series)
        style = series_style(number)
        for row, value in enumerate(values):
            if value is None:
                continue
            axes.plot(value, [row + shift] * 2, color=style["color"], linewidth=1.2)
            for place, filled in zip(value, (False, True), strict=True):
                axes.plot(place, row + shift, linestyle="", markersize=6, **_fill(style, filled))
        handles.append(point(wrap_label(label), **style))
    rows_of(axes, names)
    axes.set_xlim(-0.03, 1.03)
    per_cent(axes.xaxis)
    axes.set_xlabel(x)
    handles += [
        point(ends[0], **_fill(GREY, False)),
        point(ends[1], **_fill(GREY, True)),
    ]
    legend_above(axes, columns=5, handles=handles)


GREY = {"color": "#555555", "marker": "o"}


def point(label: str, **style: Any) -> Any:
    """Returns a legend entry for one kind of point."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", markersize=6, label=label, **style)


def _fill(style: Mapping[str, Any], filled: bool) -> dict[str, Any]:
    face = style["color"] if filled else "white"
    return {**style, "markerfacecolor": face, "markeredgecolor": style["color"]}


def scatter(
    axes: Any,
    groups: Mapping[str, Sequence[tuple[float, float, bool]]],
    *,
    x: str,
    y: str,
    fills: tuple[str, str] | None = None,
) -> None:
    """Draws points (x, y, filled), one colour and marker per group; `fills` labels the fills."""
    handles = []
    for number, (label, points) in enumerate(groups.items()):
        style = series_style(number)
        for across, up, filled in points:
            axes.plot(
                across, up, linestyle="", markersize=6.5, alpha=0.9, clip_on=False, zorder=3,
                **_fill(style, filled),
            )  # fmt: skip
        handles.append(point(wrap_label(label), **style))
    if fills:
        handles += [
            point(fills[0], **_fill(GREY, False)),
            point(fills[1], **_fill(GREY, True)),
        ]
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    legend_above(axes, handles=handles)


def forest(axes: Any, rows: Sequence[tuple[str, float, float, float]], *, x: str) -> None:
    """Draws intervals (name, low, middle, high): filled if zero is outside, else open."""
    inside, outside = COLOURS[1], COLOURS[0]
    for row, (_, low, middle, high) in enumerate(rows):
        crosses = low <= 0 <= high
        colour = inside if crosses else outside
        style = {"color": colour, "marker": MARKERS[1] if crosses else MARKERS[0]}
        axes.plot([low, high], [row, row], color=colour, linewidth=1.4)
        axes.plot(middle, row, linestyle="", markersize=5, **_fill(style, not crosses))
    axes.axvline(0, color="black", linewidth=0.9, linestyle="--")
    rows_of(axes, [name for name, *_ in rows])
    signed(axes.xaxis)
    axes.set_xlabel(x)
    handles = [
        point("zero outside", **_fill({"color": outside, "marker": MARKERS[0]}, True)),
        point("zero inside", **_fill({"color": inside, "marker": MARKERS[1]}, False)),
    ]
    legend_above(axes, handles=handles)


def heatmap(
    axes: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Mapping[tuple[str, str], float],
    *,
    unit: str,
) -> None:
    """Draws a heat map of differences with the values; a cell without a value shows ×."""
    limit = max([abs(value) for value in values.values()], default=0) or 1
    grid = [[values.get((row, column), float("nan")) for column in columns] for row in rows]
    mesh = axes.pcolormesh(
        grid, cmap="RdBu_r", vmin=-limit, vmax=limit, edgecolors="white", linewidth=1.5
    )
    for down, row in enumerate(rows):
        for across, column in enumerate(columns):
            value = values.get((row, column))
            shade = "black" if value is None else _readable(mesh.cmap(mesh.norm(value)))
            axes.text(
                across + 0.5, down + 0.5, "×" if value is None else f"{value:+.1f}", ha="center",
                va="center", fontsize=8, color=shade,
            )  # fmt: skip
    axes.set_xticks(
        [place + 0.5 for place in range(len(columns))],
        [wrap_label(column, width=22) for column in columns],
        rotation=40, ha="right", rotation_mode="anchor",
    )  # fmt: skip
    axes.set_yticks([place + 0.5 for place in range(len(rows))], [wrap_label(row) for row in rows])
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = axes.figure.colorbar(mesh, ax=axes, label=unit, fraction=0.04, pad=0.02)
    signed(bar.ax.yaxis)
    bar.outline.set_visible(False)


def _readable(background: Sequence[float]) -> str:
    """Returns black or white, whichever has more contrast (WCAG relative luminance)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in background[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"


def histograms(axes: Any, series: Mapping[str, Sequence[int]], *, x: str, y: str) -> None:
    """Draws overlaid outline histograms of whole numbers, as shares."""
    top = max(max(counts) for counts in series.values())
    width = max(1, -(-(top + 1) // 40))
    edges = [edge - 0.5 for edge in range(0, top + width + 1, width)]
    for number, (label, counts) in enumerate(series.items()):
        axes.hist(
            counts, bins=edges, weights=[1 / len(counts)] * len(counts), histtype="step",
            label=wrap_label(f"{label} (n = {len(counts)})", width=40), linewidth=1.6,
            color=COLOURS[number % len(COLOURS)], linestyle=DASHES[number % len(DASHES)],
        )  # fmt: skip
    per_cent(axes.yaxis)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    legend_above(axes)
