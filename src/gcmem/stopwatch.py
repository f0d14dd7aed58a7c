"""Measures how long each stage takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the milliseconds of each stage."""

    def __init__(self) -> None:
        self.spent_ms: dict[str, float] = {}

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Adds the time spent in this block to a stage."""
        started = time.perf_counter()
        yield
        spent = (time.perf_counter() - started) * 1000
        self.spent_ms[stage] = self.spent_ms.get(stage, 0.0) + spent
