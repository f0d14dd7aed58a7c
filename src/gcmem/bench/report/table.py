"""A table of a report, rendered as Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gcmem.frozen import FrozenDict

NONE = "–"
"""Shown if there is no figure."""
LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"$<$",
        ">": r"$>$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        "±": r"$\pm$",
        "−": r"$-$",
        "×": r"$\times$",
        "∞": r"$\infty$",
        "Δ": r"$\Delta$",
        "κ": r"$\kappa$",
        "Φ": r"$\Phi$",
        "α": r"$\alpha$",
        "–": "--",
        "…": r"\dots{}",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Named columns and rows of text; units are in the header, explanations in the note."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def column(self, name: str) -> tuple[str, ...]:
        """Returns the cells of one column."""
        place = self.columns.index(name)
        return tuple(row[place] for row in self.rows)


def to_markdown(table: Table) -> str:
    """Returns the table as Markdown, with its title as a heading."""
    lines = [
        f"### {table.title}",
        "",
        "| " + " | ".join(_escaped(c) for c in table.columns) + " |",
        "|" + "|".join("---:" if n else "---" for n in _numeric(table)) + "|",
    ]
    lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in table.rows]
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """Returns the columns and rows as CSV; missing figures are empty cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([["" if cell == NONE else cell for cell in row] for row in table.rows])
    return text.getvalue()


def to_latex(table: Table) -> str:
    """Returns the table as a LaTeX table with booktabs rules."""
    layout = "".join("r" if numeric else "l" for numeric in _numeric(table))
    caption = f"{table.title}. {table.note}" if table.note else table.title
    body = [" & ".join(cell.translate(LATEX) for cell in row) + r" \\" for row in table.rows]
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"\centering\small",
            rf"\begin{{tabular}}{{{layout}}}",
            r"\toprule",
            " & ".join(column.translate(LATEX) for column in table.columns) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption.translate(LATEX)}}}",
            rf"\label{{tab:{table.name}}}",
            r"\end{table}",
            "",
        ]
    )


RENDERERS: Mapping[str, Callable[[Table], str]] = FrozenDict(
    {"md": to_markdown, "csv": to_csv, "tex": to_latex}
)
"""Renderers by file suffix."""


def percent(share: float | None) -> str:
    """Returns a share as a percentage without the percent sign, such as "24.4"."""
    return fixed(None if share is None else 100 * share, 1)


def points(difference: float | None) -> str:
    """Returns a difference of shares in percentage points, with plus or minus sign."""
    return NONE if difference is None else f"{100 * difference + 0.0:+.1f}".replace("-0.0", "+0.0")


def fixed(value: float | None, decimals: int) -> str:
    """Returns a number with the given number of decimals."""
    return NONE if value is None else f"{value:.{decimals}f}"


def probability(p: float | None) -> str:
    """Returns a p-value; very small ones as "<0.0001"."""
    return NONE if p is None else "<0.0001" if p < 0.0001 else f"{p:.4f}"


def mean(values: Sequence[float]) -> float | None:
    """Returns the mean, or None for an empty sequence."""
    return sum(values) / len(values) if values else None


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("*", "\\*")


def _numeric(table: Table) -> list[bool]:
    """Returns for each column whether it contains figures, which are right-aligned."""
    return [
        any(cell[-1:].isdigit() for cell in cells)
        and all(cell in ("", NONE, "∞") or cell[0] in "+-<[0123456789" for cell in cells)
        for cells in ([row[place] for row in table.rows] for place in range(len(table.columns)))
    ]
