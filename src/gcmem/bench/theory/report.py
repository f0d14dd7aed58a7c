"""Writes the results of the theory experiments: tables (Markdown, CSV) and figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from gcmem.bench.report.figures import draw, lines
from gcmem.bench.run.product import describe_defaults, product_defaults
from gcmem.bench.theory.theorems import METHODS, K, RecallRow, StaleRow, StandingRow


def write_theory(
    folder: Path,
    recall: Sequence[RecallRow],
    standing: Sequence[StandingRow],
    stale: Sequence[StaleRow],
    *,
    encoder: str,
) -> list[Path]:
    """Writes all files to `folder` and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [
        _write_csv(folder / f"{name}.csv", rows)
        for name, rows in (("recall", recall), ("standing", standing), ("stale", stale))
    ]
    page = folder / "theory.md"
    page.write_text(_page(recall, standing, stale, encoder), "utf-8")
    raw = folder / "theory.json"
    body = {"encoder": encoder, "recall": recall, "standing": standing, "stale": stale}
    raw.write_text(json.dumps(body, default=asdict, indent=1) + "\n", "utf-8")
    written += [page, raw]
    for style in dict.fromkeys(row.style for row in recall):
        own = [row for row in recall if row.style == style]
        series: dict[str, list[tuple[float, float]]] = {
            method: [(row.old, row.recall) for row in own if row.method == method]
            for method in METHODS
        }
        series["predicted for dense: k·M/(N+M)"] = [
            (row.old, row.predicted) for row in own if row.predicted is not None
        ]
        written += draw(
            folder,
            f"recall_{style}",
            partial(
                lines, series=series, x="old chunks N (M = 1)", y="new state retrieved", log_x=True
            ),
        )
    for style in dict.fromkeys(row.style for row in stale):
        rows = [row for row in stale if row.style == style]
        votes = {
            "P(stale), equal vote": [(float(r.k), r.vote) for r in rows],
            "majority is stale": [(float(r.k), r.majority_wrong) for r in rows],
            "predicted: (k-1)/k": [(float(r.k), r.predicted) for r in rows],
            "P(stale) after Φ_T, perfect κ": [(float(r.k), r.after_gold) for r in rows],
        }
        read = [r for r in rows if r.reader_stale is not None and r.reader_after is not None]
        if read:
            votes["local reader stale"] = [(float(r.k), r.reader_stale or 0.0) for r in read]
            votes["local reader after Φ_T"] = [(float(r.k), r.reader_after or 0.0) for r in read]
        written += draw(
            folder,
            f"stale_{style}",
            partial(lines, series=votes, x="k", y="stale", log_x=True),
        )
    return written


def _page(
    recall: Sequence[RecallRow],
    standing: Sequence[StandingRow],
    stale: Sequence[StaleRow],
    encoder: str,
) -> str:
    defaults = describe_defaults(product_defaults(), ("retrieval", "k"))
    parts = [
        f"# The theorems as experiments\n\nEncoder: `{encoder}`. The new state is retrieved with "
        f"k = {K}; product defaults: {defaults}.\n"
    ]
    for style in dict.fromkeys(row.style for row in recall):
        own = [row for row in recall if row.style == style]
        lengths = list(dict.fromkeys(row.old for row in own))
        parts.append(f"## New state retrieved, {style} (M = 1)\n")
        parts.append("| method | " + " | ".join(f"N = {n:,}" for n in lengths) + " |")
        parts.append("|---|" + "---:|" * len(lengths))
        for method in METHODS:
            cells = [row for row in own if row.method == method]
            shown = " | ".join(f"{row.recall:.3f} ({row.worst:.2f})" for row in cells)
            parts.append(f"| {method} | {shown} |")
        predicted = [row.predicted for row in own if row.predicted is not None]
        parts.append("| predicted for dense | " + " | ".join(f"{p:.4f}" for p in predicted) + " |")
        last = [row for row in own if row.old == lengths[-1]]
        parts.append(
            "\nMean over the numbers of chunks after the update (lowest in brackets); "
            f"{own[0].asked} questions per cell. At N = {lengths[-1]:,}: "
            + "; ".join(
                f"{row.method} {row.candidates:g} candidates, {row.milliseconds:g} ms"
                for row in last
            )
            + ".\n"
        )
    first = standing[0]
    parts.append(f"## An old fact that still holds, behind N = {first.old:,} others\n")
    parts.append(
        "; ".join(f"{row.style}, {row.method}: {row.found:.3f}" for row in standing)
        + f" ({first.asked} questions each).\n"
    )
    for style in dict.fromkeys(row.style for row in stale):
        rows = [row for row in stale if row.style == style]
        parts.append(f"## The vote over k chunks, {style} (N = {rows[0].old}, M = 1)\n")
        parts.append(
            "| k | P(stale) | predicted | majority stale | after Φ_T | recovered "
            "| local reader stale | after Φ_T |"
        )
        parts.append("|---:|---:|---:|---:|---:|---:|---:|---:|")
        parts += [
            f"| {r.k} | {r.vote:.3f} | {r.predicted:.3f} | {r.majority_wrong:.3f} "
            f"| {r.after_gold:.3f} | {r.recovered:.3f} "
            f"| {_share(r.reader_stale)} | {_share(r.reader_after)} |"
            for r in rows
        ]
        parts.append("")
    return "\n".join(parts) + "\n"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _write_csv(path: Path, rows: Sequence[Any]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(asdict(rows[0])))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    return path
