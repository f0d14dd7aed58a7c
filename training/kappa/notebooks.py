"""Notebooks: what was noted about one subject over time, every line with what it says."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from training.kappa.data import CORPUS, Pair, part_of, rows_of

MEASURED = 6
"""How many pairs of a kind a notebook is measured by."""


@dataclass(frozen=True, slots=True)
class Line:
    """A text, and the value that it gives a slot; both None where it says nothing of any."""

    text: str
    slot: str | None
    value: str | None

    def contradicts(self, other: Line) -> bool:
        """Says whether both can't be true: two values of one slot."""
        return self.slot is not None and self.slot == other.slot and self.value != other.value


@dataclass(frozen=True, slots=True)
class Notebook:
    """Lines from the oldest to the newest; a question for every slot."""

    subject: str
    questions: dict[str, str]
    lines: tuple[Line, ...]

    def values(self, slot: str) -> list[str]:
        """Returns the values of a slot, the oldest first."""
        return list(dict.fromkeys(str(line.value) for line in self.lines if line.slot == slot))

    def about(self, slot: str) -> list[Line]:
        """Returns the lines that give a slot a value."""
        return [line for line in self.lines if line.slot == slot]

    def pairs(self) -> list[Pair]:
        """Returns every two lines of which one speaks of a slot, by that slot's question."""
        found = []
        for older, newer in itertools.combinations(self.lines, 2):
            if (slot := older.slot or newer.slot) is None:
                continue
            if older.contradicts(newer):
                kind = "conflict"
            else:
                kind = "restated" if older.slot == newer.slot else "other"
            found.append(
                Pair(
                    self.questions[slot],
                    older.text,
                    newer.text,
                    kind == "conflict",
                    f"notebook/{kind}",
                    group=self.subject,
                )
            )
        return found


def load_notebooks(part: str, folder: Path = CORPUS) -> list[Notebook]:
    """Reads the notebooks of one part; each falls into a part whole, by its subject."""
    return [
        Notebook(row["subject"], row["questions"], tuple(Line(**line) for line in row["lines"]))
        for row in rows_of(folder / "notebooks.jsonl")
        if part_of(row["subject"]) == part
    ]


def notebook_pairs(notebooks: Sequence[Notebook], *, seed: int) -> list[Pair]:
    """Returns a few pairs of every kind from each notebook: a long one counts no more."""
    rng = random.Random(seed)
    drawn = []
    for notebook in notebooks:
        kinds: dict[str, list[Pair]] = {}
        for pair in notebook.pairs():
            kinds.setdefault(pair.category, []).append(pair)
        for _, pairs in sorted(kinds.items()):
            drawn += rng.sample(pairs, min(len(pairs), MEASURED))
    return drawn
