"""Draws the rows that a teacher judges and the scorers learn from, once and for all.

    python -m training.kappa.rows --nli pairs.jsonl.xz --statebench train.jsonl \\
        --mined mined.jsonl --out rows.jsonl

A row that was drawn several times is written once, with its count.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import astuple
from pathlib import Path
from typing import Any

from training.kappa.data import (
    CONTRASTS,
    load_contrasts,
    load_facts,
    load_families,
    load_mined,
    load_nli,
    load_remarks,
    load_statebench,
    seen,
)
from training.kappa.draw import Draw, Mixture
from training.kappa.notebooks import load_notebooks
from training.kappa.tasks import UNKNOWN, AnswerRow, PairRow, StanceRow

Row = PairRow | StanceRow | AnswerRow
KINDS: dict[str, Any] = {"pair": PairRow, "stance": StanceRow, "answer": AnswerRow}
NLI_PAIRS = 60_000


def labelled(row: Row) -> bool:
    """Says whether a row has a label; a stance's None is one: it speaks for none of the options."""
    return row.label != UNKNOWN if isinstance(row, StanceRow) else row.label is not None


def draw_rows(draw: Draw, *, times: int) -> Counter[Row]:
    """Returns the rows of so many draws, and how often each came."""
    mixture = Mixture()
    rows: Counter[Row] = Counter()
    for _ in range(times):
        rows.update([*draw.pairs(mixture), *draw.stances(mixture), *draw.answers(mixture)])
    return rows


def write_rows(path: Path, rows: Counter[Row]) -> None:
    """Writes rows with their counts, one a line."""
    names = {kind: name for name, kind in KINDS.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row, count in rows.items():
            line = [names[type(row)], astuple(row), count]
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def load_rows(path: Path) -> list[tuple[Row, int]]:
    """Reads rows with their counts."""
    rows: list[tuple[Row, int]] = []
    with path.open(encoding="utf-8") as file:  # texts may hold what splitlines takes for an end
        for line in file:
            kind, fields, count = json.loads(line)
            values = (tuple(f) if isinstance(f, list) else f for f in fields)
            rows.append((KINDS[kind](*values), count))
    return rows


def main() -> None:
    """Draws and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nli", type=Path, required=True)
    parser.add_argument("--statebench", type=Path, required=True)
    parser.add_argument("--mined", type=Path, required=True, help="of training.kappa.mine")
    parser.add_argument("--times", type=int, default=400, help="how many draws of the mixture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    contrasts = load_contrasts("train")
    pools = {
        **{
            category: [p for p in contrasts if p.category.startswith(category)]
            for category in CONTRASTS
        },
        "nli": load_nli(args.nli, limit=NLI_PAIRS, seed=0),
        "statebench": load_statebench(args.statebench),
        "mined": load_mined(args.mined),
    }
    draw = Draw(
        seen(load_families(), "train"),
        pools,
        load_facts("train"),
        load_remarks("train"),
        load_notebooks("train"),
        seed=args.seed,
    )
    rows = draw_rows(draw, times=args.times)
    write_rows(args.out, rows)
    print(dict(Counter(type(row).__name__ for row in rows)), "different rows")


if __name__ == "__main__":
    main()
