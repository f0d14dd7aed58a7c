"""A quick judge of claims, and a memory that judges with it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gcmem import Memory, Settings
from gcmem.protocols import Reads, Ruling
from gcmem.testing import HashEncoder
from gcmem.types import Claim, JudgeKind
from tests.conftest import NOW

WHY = "they begin alike"


class SlotJudge:
    """Claims that begin alike and end differently conflict; "perhaps" makes that doubtful."""

    id = "slots@1"
    kind: JudgeKind = "model"
    reads = Reads(most=20, similarity=-1.0)
    sure, likely, floor = 0.9, 0.5, 0.1

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        return [self._ruling(older.text, newer.text) for older, newer in pairs]

    def _ruling(self, older: str, newer: str) -> Ruling:
        if older.split()[:3] != newer.split()[:3]:
            return Ruling(0.0)
        return Ruling(0.6 if "perhaps" in newer else 1.0, WHY)


class SlowJudge(SlotJudge):
    """Waits inside of each ruling on pairs until it is let go."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_go = threading.Event()

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        if pairs:
            self.has_begun.set()
            self.may_go.wait(30)
        return super().rule(pairs, question=question)


def judging_memory(path: Path, by: SlotJudge | None = None, **settings: Any) -> Memory:
    """Opens a memory that judges ahead; by default only when `judge` or a search does."""
    chosen = {"judge": "manual", "judge_budget_ms": 10_000, "respect_trust": True, **settings}
    return Memory(
        path,
        encoder=HashEncoder(),
        judge=by or SlotJudge(),
        settings=Settings(**chosen),
        require_qualified=False,
        clock=lambda: NOW,
    )
