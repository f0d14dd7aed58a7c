"""The style of all figures: readable in print and by colour-blind people, and reproducible."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gcmem.errors import MissingExtraError

# Okabe and Ito's colour-blind palette; lines also differ in dashes and markers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx", "\\\\")
FORMATS = ("svg", "png")


def pyplot() -> Any:
    """Returns matplotlib's pyplot, configured to write files only."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("bench", package="matplotlib") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "figure.figsize": (6.4, 3.8),
            "figure.dpi": 150,
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "svg.hashsalt": "gcmem",
            "svg.fonttype": "none",
        }
    )
    return plt


def draw(folder: Path, name: str, paint: Callable[[Any], None], **figure: Any) -> list[Path]:
    """Writes one figure as SVG and PNG; `paint` draws on the axes."""
    plt = pyplot()
    drawn, axes = plt.subplots(**figure)
    paint(axes)
    drawn.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix in FORMATS:
        path = folder / f"{name}.{suffix}"
        metadata = {"Date": None} if suffix == "svg" else {"Software": None}
        # "tight": a long label widens the picture instead of being cut off.
        drawn.savefig(path, metadata=metadata, bbox_inches="tight")
        written.append(path)
    plt.close(drawn)
    return written


def series_style(number: int) -> dict[str, Any]:
    """Returns the colour and marker of the nth series; the first 64 are distinct."""
    turned = number + number // len(COLOURS)
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[turned % len(MARKERS)]}


def wrap_label(text: str, *, width: int = 28) -> str:
    """Returns a label wrapped into lines, with `$` escaped so that it isn't read as mathematics."""
    broken = "\n".join(textwrap.wrap(text, width)) or "—"
    return broken.replace("$", r"\$")


def legend_above(axes: Any, *, columns: int = 3, handles: Sequence[Any] | None = None) -> None:
    """Puts the legend above the axes, where it hides no data."""
    known = list(axes.get_legend_handles_labels()[0]) if handles is None else list(handles)
    axes.legend(
        handles=known, loc="lower left", bbox_to_anchor=(0, 1.01), ncols=columns, fontsize=7.5,
        borderaxespad=0, columnspacing=1.4,
    )  # fmt: skip


def lines(
    axes: Any,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    percent: bool = True,
) -> None:
    """Draws one line per series; lines differ in colour, dash and marker."""
    for number, (label, points) in enumerate(series.items()):
        axes.plot(
            [point[0] for point in points],
            [point[1] for point in points],
            label=wrap_label(label),
            linestyle=DASHES[number % len(DASHES)],
            markersize=4,
            linewidth=1.4,
            **series_style(number),
        )
    if log_x:
        axes.set_xscale("log")
    if percent:
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(fontsize=7.5)


def histogram(axes: Any, values: Sequence[float], *, x: str, marks: Mapping[str, float]) -> None:
    """Draws a histogram with labelled vertical marks."""
    axes.hist(values, bins=40, color=COLOURS[0], edgecolor="white", linewidth=0.3)
    for number, (label, value) in enumerate(marks.items(), 1):
        axes.axvline(
            value, color=COLOURS[number], linestyle=DASHES[number], label=f"{label} {value:.3f}"
        )
    axes.set_xlabel(x)
    axes.set_ylabel("pairs")
    axes.legend(fontsize=8)
