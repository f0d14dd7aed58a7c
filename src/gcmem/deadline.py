"""Time limits, and a way to cancel work from outside.

The caller sets a deadline with `within`. Long loops wrap each iteration in `step` (one pair of the
oracle, one text of the encoder), or call `check` in between. Without a deadline nothing happens.
Stores never check, so a write that has begun always finishes.
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
    """The time limit of a piece of work; safe to use from several threads.

    `turn` is entered for each step: a server uses it to share its cores between requests.
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
    def reason(self) -> GCMemError:
        """Why the work was cancelled."""
        assert self._reason is not None
        return self._reason

    @property
    def left_s(self) -> float:
        """The seconds left, at least 0."""
        return max(0.0, self._ends_at - time.monotonic())

    def is_spent(self) -> bool:
        """Returns whether the time is up."""
        return self.left_s <= 0

    def check(self) -> None:
        """Raises if the work was cancelled or took too long."""
        if self._reason is not None:
            # Raise a copy: several threads may raise it, and each adds its own traceback.
            raise type(self._reason)(*self._reason.args)
        if time.monotonic() >= self._ends_at:
            raise DeadlineExceededError(seconds=self.seconds)

    def cancel(self, reason: GCMemError) -> None:
        """Makes every later check raise `reason`, and runs the callbacks once."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def when_cancelled(self, callback: Callable[[], None]) -> None:
        """Calls `callback` when the work is cancelled, or at once if it already was."""
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
    """Sets the deadline for this block."""
    token = _CURRENT.set(deadline)
    try:
        yield deadline
    finally:
        _CURRENT.reset(token)


@contextmanager
def budget(seconds: float) -> Iterator[Deadline]:
    """Limits this block to so many seconds, within the current deadline and its turns.

    Steps raise `DeadlineExceededError` when the time is up.
    """
    outer = _CURRENT.get()
    if outer is None:
        with within(Deadline(seconds)) as own:
            yield own
        return
    own = Deadline(min(seconds, outer.left_s), turn=outer.turn)
    outer.when_cancelled(lambda: own.cancel(outer.reason))
    with within(own):
        yield own


def current() -> Deadline | None:
    """Returns the current deadline, or None."""
    return _CURRENT.get()


def check() -> None:
    """Raises if the current work was cancelled or took too long."""
    deadline = _CURRENT.get()
    if deadline is not None:
        deadline.check()


@contextmanager
def step() -> Iterator[None]:
    """Wraps one step of the work. Raises if the work was cancelled or took too long."""
    deadline = _CURRENT.get()
    if deadline is None:
        yield
        return
    deadline.check()
    with deadline.turn():
        deadline.check()
        yield


def map_in_threads(work: Callable[..., R], *rows: Iterable[object], workers: int) -> list[R]:
    """Runs `work` on each row in a thread pool, each as a step; returns the results in order.

    Pool threads don't inherit the caller's context, so each call gets a copy of it.
    """
    context = contextvars.copy_context()

    def one(*row: object) -> R:
        with step():
            return work(*row)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda *row: context.copy().run(one, *row), *rows))
