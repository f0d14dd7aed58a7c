"""Makes async versions of synchronous methods, which run in a worker thread.

A thread can't be stopped. So when an async call is cancelled, its thread may still run.
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
    """Makes the async version of a method that reads.

    If it is cancelled it returns at once, and the thread's result is dropped.
    """

    @functools.wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio  # imported here: synchronous callers should not pay for it

        return await asyncio.to_thread(method, self, *args, **kwargs)

    twin.__doc__ = f"The async version of `{getattr(method, '__name__', 'the method')}`."
    return twin


def write_in_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Makes the async version of a method that writes.

    If it is cancelled it waits for the write to end, so that nothing changes after it raises.
    """

    @functools.wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio

        begun = threading.Lock()

        def call() -> R:
            if not begun.acquire(blocking=False):
                raise asyncio.CancelledError  # cancelled before a thread was free
            return method(self, *args, **kwargs)

        work = asyncio.ensure_future(asyncio.to_thread(call))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if begun.acquire(blocking=False):  # no thread has begun, and now none will
                work.cancel()
                raise
            while not work.done():
                with suppress(asyncio.CancelledError):  # cancelled again, but the write still runs
                    await asyncio.wait([work])
            if not work.cancelled():
                work.exception()  # retrieve it, so that asyncio does not log it as unhandled
            raise

    name = getattr(method, "__name__", "the method")
    twin.__doc__ = (
        f"The async version of `{name}`.\n\n"
        "If it is cancelled or times out, it waits for the write to end before it raises. By then\n"
        "the messages may be stored: check with `get_all` before you add them again. A call that\n"
        "has not begun stores nothing."
    )
    return twin
