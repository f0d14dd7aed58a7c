"""Stores as source or target of a move: opened by path or URL, read in log order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gcmem.protocols import ChunkLog, Encoder, Store, Vectors, VectorSource
from gcmem.settings import Settings
from gcmem.store.urls import open_url
from gcmem.transfer.rows import Row
from gcmem.types import Chunk, ChunkFilter

BATCH = 1_000
"""Number of chunks that are read, embedded and stored together."""


def open_store(location: str, *, encoder: Encoder) -> Store:
    """Opens the store at a path or URL."""
    return open_url(location, encoder=encoder, stm_size=Settings().stm_size)


class LogRows:
    """A log as a source of rows, without chunks that are added after this object is created.

    So a second pass reads the same rows.
    """

    digest = None

    def __init__(
        self,
        log: ChunkLog,
        *,
        where: ChunkFilter | None = None,
        after_seq: int = 0,
        up_to_seq: int | None = None,
    ) -> None:
        self._log = log
        self._where = where or ChunkFilter()
        self._after_seq = after_seq
        self.up_to_seq = last_seq(log) if up_to_seq is None else up_to_seq
        self.name = log.location
        self.count: int | None = log.count(self._where)
        self.encoder_id = log.encoder_id if isinstance(log, VectorSource) else None

    def rows(self, *, vectors: bool) -> Iterator[Row]:
        """Yields the chunks in log order; `line` is the sequence number."""
        chunks = self._log.scan(self._where, after_seq=self._after_seq)
        while batch := list(islice(chunks, BATCH)):
            batch = [chunk for chunk in batch if (chunk.seq or 0) <= self.up_to_seq]
            found = self._vectors(batch) if vectors else {}
            for chunk in batch:
                yield Row(line=chunk.seq or 0, chunk=chunk, vector=found.get(chunk.id))
            if not batch:
                return

    def _vectors(self, batch: list[Chunk]) -> dict[str, Vectors]:
        if not isinstance(self._log, VectorSource):
            return {}
        return self._log.vectors([chunk.id for chunk in batch])


def last_seq(log: ChunkLog) -> int:
    """Returns the highest sequence number of a log, 0 if it is empty."""
    newest = next(iter(log.scan(ChunkFilter(), newest_first=True, limit=1)), None)
    return 0 if newest is None else newest.seq or 0
