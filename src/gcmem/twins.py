"""Async twins of synchronous methods.

A thread can't be stopped. So when the caller of a twin is cancelled, its call may still run.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def in_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Makes the async twin of a method that reads: the same call, in a worker thread.

    Cancelled, it returns at once; what the thread still finds is dropped.
    """

    @functools.wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio  # here, since a synchronous caller should not pay for importing it

        return await asyncio.to_thread(method, self, *args, **kwargs)

    twin.__doc__ = f"The async twin of `{getattr(method, '__name__', 'the method')}`."
    return twin


def write_in_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Makes the async twin of a method that writes: cancelled, it waits for the write to end.

    So whoever sees the cancellation sees a state that no longer changes.
    """

    @functools.wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio

        begun = threading.Lock()

        def call() -> R:
            if not begun.acquire(blocking=False):
                raise asyncio.CancelledError  # given up before a thread was free
            return method(self, *args, **kwargs)

        work = asyncio.ensure_future(asyncio.to_thread(call))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if begun.acquire(blocking=False):  # no thread has begun, and now none will
                work.cancel()
                raise
            while not work.done():
                with suppress(asyncio.CancelledError):  # cancelled again: it still runs
                    await asyncio.wait([work])
            if not work.cancelled():
                work.exception()  # seen, so that asyncio does not complain that nobody did
            raise

    name = getattr(method, "__name__", "the method")
    twin.__doc__ = (
        f"The async twin of `{name}`.\n\n"
        "Cancelled or timed out, it waits until the write has ended before it raises. By then the\n"
        "messages may be stored: look with `get_all` before you add them again. A call that has\n"
        "not begun stores nothing."
    )
    return twin
