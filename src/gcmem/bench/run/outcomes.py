"""The records of a run: one outcome per condition and instance, and the run's settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gcmem.errors import InvalidInputError
from gcmem.frozen import FrozenDict


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One cell of the grid.

    `setting` is "retrieval" or "bag" (bag of facts, k = ∞: every chunk is a candidate). `retrieval`
    is "dense", "paper" or "stratified". `path` is "standard", "timestamp", "time-decay",
    "multi-factor:…" or "gcmem"; `oracle` is "" if the path uses none.
    """

    dataset: str
    setting: str
    retrieval: str
    reader: str
    mode: str
    path: str
    oracle: str = ""
    k: int = 10

    @property
    def stm(self) -> bool:
        """Whether the recency buffer was on."""
        return self.retrieval == "paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one instance under one condition."""

    condition: Condition
    instance: str
    family: str
    severity: int
    subset: str
    ratio: int | None = None
    """N:M of the sweep; None elsewhere."""
    choice: str | None = None
    text: str = ""
    correct: bool = False
    stale: bool = False
    """The answer is a superseded state (or names a superseded value)."""
    unclear: bool = False
    """The reader abstained."""
    error: str = ""
    """Set if the instance failed: it is excluded from every rate and counted separately."""
    candidates: int = 0
    candidate_hash: str = ""
    """Hash of the frozen candidate set; the same for every path of an instance."""
    recall_old: float | None = None
    recall_new: float | None = None
    recall_distractor: float | None = None
    """Share of the instance's turns of each kind that are in the candidate set."""
    shadows: int = 0
    stale_removed: float | None = None
    """Share of the stale turns among the candidates that Φ_T removed."""
    keep_rate: float | None = None
    """Share of the still-true turns among the candidates that were kept."""
    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    """Turns removed correctly, removed wrongly, and kept wrongly."""
    timings_ms: Mapping[str, float] = field(default_factory=FrozenDict, hash=False)
    """Milliseconds by stage: retrieve, conflict, dominance, read."""
    tokens: int = 0
    calls: int = 0

    @property
    def seconds(self) -> float:
        """Total time in seconds."""
        return sum(self.timings_ms.values()) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished (or interrupted) run: its outcomes, and everything needed to repeat it."""

    outcomes: tuple[Outcome, ...]
    about: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False)
    """Settings, seeds, commit, package versions, dataset hashes, start and end."""


def row_of(outcome: Outcome) -> str:
    """Returns an outcome as one line of JSON."""
    row = asdict(outcome)
    row["timings_ms"] = {stage: round(ms, 3) for stage, ms in outcome.timings_ms.items()}
    return json.dumps(row, ensure_ascii=False)


def load_run(folder: Path) -> Run:
    """Reads results.jsonl and run.json of a run's folder; skips a line cut off by a crash."""
    results, about = folder / "results.jsonl", folder / "run.json"
    if not results.exists():
        raise InvalidInputError(f"{folder} is not a run: results.jsonl is missing")
    return Run(
        outcomes=tuple(parse_rows(results.read_text("utf-8").splitlines())),
        about=FrozenDict(json.loads(about.read_text("utf-8")) if about.exists() else {}),
    )


def parse_rows(lines: Iterable[str]) -> list[Outcome]:
    """Returns the outcomes parsed from JSON lines."""
    found = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed while writing
        row["condition"] = Condition(**row["condition"])
        row["timings_ms"] = FrozenDict(row["timings_ms"])
        found.append(Outcome(**row))
    return found


def answered(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Returns the outcomes without an error."""
    return [outcome for outcome in outcomes if not outcome.error]
