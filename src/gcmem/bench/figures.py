"""How every figure looks: readable in print, by the colour-blind, and the same on every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gcmem.errors import MissingExtraError

# Okabe and Ito's palette; lines differ in their dashes and markers as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FORMATS = ("svg", "png")


def pyplot() -> Any:
    """Returns matplotlib's pyplot, set up to write files only."""
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
    """Writes one figure as SVG and PNG; `paint` gets the axes."""
    plt = pyplot()
    drawn, axes = plt.subplots(**figure)
    paint(axes)
    drawn.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix in FORMATS:
        path = folder / f"{name}.{suffix}"
        metadata = {"Date": None} if suffix == "svg" else {"Software": None}
        drawn.savefig(path, metadata=metadata)
        written.append(path)
    plt.close(drawn)
    return written


def lines(
    axes: Any,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    percent: bool = True,
) -> None:
    """Draws one line a series, told apart by colour, dash and marker."""
    for number, (label, points) in enumerate(series.items()):
        axes.plot(
            [point[0] for point in points],
            [point[1] for point in points],
            label=label,
            color=COLOURS[number % len(COLOURS)],
            linestyle=DASHES[number % len(DASHES)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            linewidth=1.4,
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
