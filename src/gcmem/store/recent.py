"""The embedded STM: a window over the log's newest chunks."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.protocols import ChunkLog
from gcmem.types import Chunk, ChunkFilter


class LogBuffer:
    """The newest chunks of a scope by event time, read from the log's own time index.

    It caches nothing, so it can't disagree with the log, and a chunk that arrives late takes its
    place by event time instead of pushing out a newer one.
    """

    def __init__(self, log: ChunkLog, *, capacity: int) -> None:
        self._log = log
        self.capacity = capacity

    def push(self, chunks: Sequence[Chunk]) -> None:
        """Does nothing: the log has the chunks already."""

    def recent(self, where: ChunkFilter) -> tuple[Chunk, ...]:
        """Returns the newest matching chunks, newest first."""
        return tuple(self._log.scan(where, by_time=True, newest_first=True, limit=self.capacity))

    def rebuild(self) -> None:
        """Does nothing: there is nothing cached."""

    def close(self) -> None:
        """Does nothing: the log is closed by its owner."""
