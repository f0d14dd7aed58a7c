"""A time limit on a piece of work, and a way to stop it from outside.

Whoever starts the work sets a deadline with `within`. Long loops make each of their steps a `step`
(a pair of the conflict oracle, a text of the encoder), or call `check` between two. Where no
deadline is set, nothing happens. Stores never check, so a write that has begun is finished.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from gcmem.errors import DeadlineExceededError, GCMemError

R = TypeVar("R")


class Deadline:
    """Says until when a piece of work may go on; safe to use from several threads.

    `turn` is entered for each step: a server uses it to let others have their turn.
    """

    def __init__(
        self, seconds: float, *, turn: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self.seconds = seconds
        self.turn = turn
        self._ends_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._reason: GCMemError | None = None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def left_s(self) -> float:
        """The seconds that are left; 0 when there are none."""
        return max(0.0, self._ends_at - time.monotonic())

    def check(self) -> None:
        """Raises when the work was cancelled, or took too long."""
        if self._reason is not None:
            # A copy: several threads may raise it, and each adds its own traceback.
            raise type(self._reason)(*self._reason.args)
        if time.monotonic() >= self._ends_at:
            raise DeadlineExceededError(seconds=self.seconds)

    def cancel(self, reason: GCMemError) -> None:
        """Makes every later check raise `reason`, and calls the callbacks; once only."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def when_cancelled(self, callback: Callable[[], None]) -> None:
        """Calls `callback` on a cancellation, at once if there was one."""
        with self._lock:
            if self._reason is None:
                self._callbacks.append(callback)
                return
        callback()


_CURRENT: contextvars.ContextVar[Deadline | None] = contextvars.ContextVar(
    "gcmem_deadline", default=None
)


@contextmanager
def within(deadline: Deadline) -> Iterator[Deadline]:
    """Sets the deadline of what is done in this block."""
    token = _CURRENT.set(deadline)
    try:
        yield deadline
    finally:
        _CURRENT.reset(token)


def current() -> Deadline | None:
    """Returns the deadline of the work in progress, or None."""
    return _CURRENT.get()


def check() -> None:
    """Raises when the work in progress was cancelled, or took too long."""
    deadline = _CURRENT.get()
    if deadline is not None:
        deadline.check()


@contextmanager
def step() -> Iterator[None]:
    """Surrounds a step of the work in progress; raises where there must not be another."""
    deadline = _CURRENT.get()
    if deadline is None:
        yield
        return
    deadline.check()
    with deadline.turn():
        deadline.check()
        yield


def map_in_threads(work: Callable[..., R], *rows: Iterable[object], workers: int) -> list[R]:
    """Returns what `work` gives for each row, in order; each is a step.

    Threads of a pool don't know the context of their caller, so each call gets a copy of it.
    """
    context = contextvars.copy_context()

    def one(*row: object) -> R:
        with step():
            return work(*row)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda *row: context.copy().run(one, *row), *rows))
