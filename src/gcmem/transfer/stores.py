"""Stores as source or target of a move: opened by path or URL, read in log order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gcmem.indexed_text import TEXT_VERSION
from gcmem.protocols import Encoder, Store
from gcmem.settings import Settings
from gcmem.store import urls
from gcmem.store.sqlite.file import IN_MEMORY
from gcmem.transfer.rows import Row
from gcmem.types import ChunkFilter

BATCH = 1_000
"""Number of chunks that are read, embedded and stored together."""


def open_store(location: str, *, encoder: Encoder) -> Store:
    """Opens the store at a path or URL."""
    return urls.open_store(location, encoder=encoder, stm_size=Settings().stm_size)


def open_source(location: str, *, encoder: Encoder) -> Store:
    """Opens a store to read from.

    A qdrant:// URL is the whole store of an older gcmem: its chunks are read into memory.
    """
    if location.partition("://")[0] in urls.INDEXES:
        from gcmem.store.qdrant.old_layout import old_chunks

        store = urls.open_store(IN_MEMORY, encoder=encoder, stm_size=0)
        store.log.append(tuple(old_chunks(location)))
        return store
    return open_store(location, encoder=encoder)


class StoreRows:
    """A store as a source of rows, without chunks that are added after this object is created.

    So a second pass reads the same rows.
    """

    digest = None

    def __init__(
        self,
        store: Store,
        *,
        where: ChunkFilter | None = None,
        after_seq: int = 0,
        up_to_seq: int | None = None,
    ) -> None:
        self._log, self._index = store.log, store.index
        self._where = where or ChunkFilter()
        self._after_seq = after_seq
        self.up_to_seq = self._log.state().last_seq if up_to_seq is None else up_to_seq
        self.name = self._log.location
        self.count: int | None = self._log.count(self._where)
        # Vectors that were made in an older way are not worth moving.
        is_current = self._index.text_version == TEXT_VERSION
        self.encoder_id = self._index.encoder_id if is_current else None

    def rows(self, *, vectors: bool) -> Iterator[Row]:
        """Yields the chunks in log order; `line` is the sequence number."""
        chunks = self._log.scan(self._where, after_seq=self._after_seq)
        while batch := list(islice(chunks, BATCH)):
            batch = [chunk for chunk in batch if (chunk.seq or 0) <= self.up_to_seq]
            found = self._index.vectors([c.id for c in batch]) if vectors else {}
            for chunk in batch:
                yield Row(line=chunk.seq or 0, chunk=chunk, vector=found.get(chunk.id))
            if not batch:
                return
