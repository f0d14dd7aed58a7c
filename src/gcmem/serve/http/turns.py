"""Shares the cores between callers: each step of expensive work waits for its turn."""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Turns:
    """Runs one step per core. Two active callers get half of the cores each.

    Threads alone would not be fair: a caller with six of them would get three times as much as one
    with two. `active` returns the number of active callers.
    """

    def __init__(self, *, active: Callable[[], int], cores: int | None = None) -> None:
        self._active = active
        self._cores = self._free = cores or _cores()
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()

    @contextmanager
    def take(self, caller: str) -> Iterator[None]:
        """Waits for a turn, and holds it during the block."""
        turn = threading.Event()
        with self._lock:
            self._waiting.setdefault(caller, deque()).append(turn)
            self._give()
        turn.wait()
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
                self._held[caller] -= 1
                if not self._held[caller]:
                    del self._held[caller]
                self._give()

    def _give(self) -> None:
        """Gives the free cores to waiting callers in turn."""
        share = -(-self._cores // max(1, self._active()))
        for caller in list(self._waiting):
            if not self._free:
                return
            if self._held[caller] >= share:
                continue
            queue = self._waiting[caller]
            self._free -= 1
            self._held[caller] += 1
            queue.popleft().set()
            # To the end of the line: the others come first now.
            self._waiting.move_to_end(caller)
            if not queue:
                del self._waiting[caller]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
