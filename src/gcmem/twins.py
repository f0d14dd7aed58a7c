"""Async twins of synchronous methods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def in_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Makes the async twin of a method: the same call, in a worker thread."""

    @functools.wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio  # here, since a synchronous caller should not pay for importing it

        return await asyncio.to_thread(method, self, *args, **kwargs)

    twin.__doc__ = f"The async twin of `{getattr(method, '__name__', 'the method')}`."
    return twin
