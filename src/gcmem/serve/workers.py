"""A bounded pool of threads: a Memory is synchronous, the server is not."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gcmem.errors import OverloadedError

T = TypeVar("T")


class Workers:
    """Runs calls in threads; when too many wait, the next one is turned away at once."""

    def __init__(self, *, threads: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="gcmem")
        self._most = threads + waiting
        self._pending = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Returns what `work` returns, in the context of the caller."""
        if self._pending >= self._most:
            raise OverloadedError(f"{self._pending} requests are waiting already; try again")
        self._pending += 1
        try:
            context = contextvars.copy_context()
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, context.run, work)
        finally:
            self._pending -= 1

    def close(self) -> None:
        """Waits for the calls that were begun: an accepted write is finished."""
        self._pool.shutdown(wait=True)
