"""A store: a log and the parts that are derived from it, written together."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gcmem.errors import StoreUnavailableError
from gcmem.protocols.ledger import ClaimTable, Ledger
from gcmem.protocols.models import Vectors
from gcmem.protocols.stores import (
    ChunkLog,
    RecencyBuffer,
    ScoreCache,
    VectorIndex,
    WordIndex,
)
from gcmem.types import Chunk

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A log, the ledger, and what is derived: indexes, the buffer, cached scores, claims."""

    log: ChunkLog
    index: VectorIndex
    buffer: RecencyBuffer
    words: WordIndex | None = None
    scores: ScoreCache | None = None
    claims: ClaimTable | None = None
    ledger: Ledger | None = None

    def append(
        self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str
    ) -> tuple[Chunk, ...]:
        """Stores all chunks or none, durably, and returns them with their sequence numbers.

        An index that does not share the log's database comes second. If it can't be written, the
        chunks are stored all the same, and the next search adds them to the index.
        """
        vectors = self.index.check(vectors, count=len(chunks), encoder_id=encoder_id)
        words = [] if self.words is None else self.words.read(chunks)
        with self.log.transaction():
            stored = self.log.append(chunks)
            if self.words is not None:
                self.words.upsert([chunk.seq or 0 for chunk in stored], words)
            if self.index.shares_log:
                self.index.upsert(stored, vectors, encoder_id=encoder_id)
        if not self.index.shares_log:
            with _left_to_the_next_search(self.log):
                self.index.upsert(stored, vectors, encoder_id=encoder_id)
        self.buffer.push(stored)
        return stored

    def delete(self, ids: Sequence[str]) -> int:
        """Deletes chunks permanently, with all that is derived; returns how many existed."""
        with self.log.transaction():
            seqs = self.log.delete(ids)
            if self.index.shares_log:
                self.index.delete(seqs)
            if self.words is not None:
                self.words.delete(seqs)
            if self.scores is not None:
                self.scores.forget(ids)
            if self.claims is not None:
                self.claims.forget(seqs)
            if self.ledger is not None:
                self.ledger.forget(ids)
        if seqs and not self.index.shares_log:
            with _left_to_the_next_search(self.log):
                self.index.delete(seqs)
        return len(seqs)

    def close(self) -> None:
        """Closes all parts."""
        for part in (self.scores, self.ledger, self.buffer, self.index, self.log):
            if part is not None:
                part.close()


@contextmanager
def _left_to_the_next_search(log: ChunkLog) -> Iterator[None]:
    try:
        yield
    except StoreUnavailableError as error:
        logger.warning("%s; %s has the change, and the next search applies it", error, log.location)
