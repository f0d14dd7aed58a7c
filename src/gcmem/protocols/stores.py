"""The parts of a store: a log, and what is derived from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gcmem.protocols.models import Encoder, Progress, Vectors
from gcmem.types import Chunk, ChunkFilter


class LogState(NamedTuple):
    """How far a log has come. An index that has the same state is complete."""

    last_seq: int = 0
    last_erasure: int = 0


class ChunkLog(Protocol):
    """The append-only source of truth: chunks in the order in which they were stored."""

    @property
    def location(self) -> str:
        """Where the log lives, for messages."""

    @property
    def id(self) -> str:
        """A name that no other log has; a backup keeps it."""

    def transaction(self) -> AbstractContextManager[object]:
        """Joins the writes inside, by the log and by whatever shares its database, into one."""

    def append(self, chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        """Stores all chunks or none, durably, and returns them with their sequence numbers."""

    def get(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """Returns the chunks that exist, by id."""

    def scan(
        self,
        where: ChunkFilter,
        *,
        by_time: bool = False,
        newest_first: bool = False,
        after_seq: int = 0,
        limit: int | None = None,
    ) -> Iterator[Chunk]:
        """Yields at most `limit` matching chunks, in log order or by event time."""

    def seqs(self, where: ChunkFilter) -> NDArray[np.int64]:
        """Returns the sequence numbers of the matching chunks, sorted."""

    def count(self, where: ChunkFilter) -> int:
        """Returns the number of matching chunks."""

    def set_metadata(self, chunk_id: str, metadata: Mapping[str, Any]) -> Chunk | None:
        """Replaces a chunk's metadata durably; returns None if there is no such chunk."""

    def delete(self, ids: Sequence[str]) -> list[int]:
        """Deletes chunks permanently and returns the sequence numbers of those that existed.

        `Store.delete` also deletes what is derived from them.
        """

    def state(self) -> LogState:
        """Returns the last sequence number and the number of the last erasure."""

    def erased_since(self, erasure: int) -> list[int]:
        """Returns the sequence numbers erased after the given erasure."""

    def close(self) -> None:
        """Closes files and connections."""


@runtime_checkable
class SlowEraser(Protocol):
    """Optional for a log: erasing may continue after `delete` has returned."""

    def erasing(self) -> str | None:
        """Describes what is still to be erased, and when that happens; None if nothing is."""


@runtime_checkable
class BackupSource(Protocol):
    """Optional for a log: gcmem can back it up."""

    def backup(
        self, path: Path, *, overwrite: bool = False, progress: Progress | None = None
    ) -> int:
        """Copies the store into a file while it is in use; returns the number of chunks."""


class VectorIndex(Protocol):
    """The medium-term memory (MTM): finds chunks of the log by similarity.

    An engine that is only good at search implements `SearchEngine` instead; `gcmem.store.beside`
    makes an index of it that catches up with the log by itself.
    """

    @property
    def shares_log(self) -> bool:
        """Whether its writes join the log's transaction, so that both always agree."""

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None until the first chunk is stored."""

    @property
    def text_version(self) -> int:
        """How the embedded texts were made (see `gcmem.indexed_text`)."""

    def hand_over(self) -> None:
        """Drops the vectors, because another index takes over; a rebuild takes it back."""

    def check(self, vectors: Vectors, *, count: int, encoder_id: str) -> Vectors:
        """Returns `count` vectors as they will be stored; raises if they don't fit the index."""

    def upsert(self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str) -> None:
        """Adds chunks that the log has just stored, or replaces their vectors."""

    def delete(self, seqs: Sequence[int]) -> None:
        """Drops the chunks with these sequence numbers."""

    def search(
        self,
        queries: Vectors,
        *,
        k: int,
        where: ChunkFilter,
        frontier: int = 0,
        beyond: int | None = None,
    ) -> list[list[tuple[str, float]]]:
        """Returns, for each query, the k most similar chunk ids with their cosine.

        With `frontier`, the chunks on the frontier follow, newest first: those for which fewer
        than `frontier` newer chunks are at least as similar. The `beyond` most similar chunks,
        by default all k, are not repeated there.
        """

    def score(self, queries: Vectors, ids: Sequence[str]) -> Vectors:
        """Returns the cosine of every query (rows) to every id (columns)."""

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the stored vectors of the chunks that exist, by id."""

    def state(self) -> LogState:
        """Returns the state of the log up to which the index is complete."""

    def rebuild(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Embeds every chunk of the log anew and returns their number.

        Searches use the old vectors meanwhile. After an interruption, the next call continues.
        """

    def close(self) -> None:
        """Closes the index's own connections; the log stays open."""


class WordIndex(Protocol):
    """Lexical search: finds chunks by their words, scored by BM25 over the chunks that match.

    It lives in the log's database, so that it is there whatever engine keeps the vectors.
    """

    def read(self, chunks: Sequence[Chunk]) -> Sequence[Any]:
        """Returns the words of chunks as `upsert` takes them; outside of transactions."""

    def upsert(self, seqs: Sequence[int], words: Sequence[Any]) -> None:
        """Adds the words of chunks that the log has just stored, in the log's transaction."""

    def delete(self, seqs: Sequence[int]) -> None:
        """Drops the chunks with these sequence numbers, in the log's transaction."""

    def search(self, question: str, *, k: int, where: ChunkFilter) -> list[tuple[str, float]]:
        """Returns the k best chunk ids with their scores, only those that share a word."""

    def rebuild(self) -> None:
        """Reads the words of every chunk again."""


class EngineMark(NamedTuple):
    """What a search engine knows about itself: whose data it has, and how complete they are."""

    log_id: str
    encoder_id: str
    state: LogState


class EngineHit(NamedTuple):
    """A search hit: the chunk's id, its place in time and in the log, and its cosine."""

    id: str
    at: datetime
    seq: int
    score: float


class SearchEngine(Protocol):
    """A vector engine beside a log. It may lag behind or lose data: the log has everything.

    `gcmem.store.beside.IndexBeside` makes a `VectorIndex` of it.
    """

    @property
    def location(self) -> str:
        """Where the engine lives, for messages."""

    def mark(self) -> EngineMark | None:
        """Returns the mark saved last; None if the engine has no data."""

    def set_mark(self, mark: EngineMark, *, replacing: EngineMark) -> None:
        """Saves a mark, unless another process has replaced `replacing` meanwhile."""

    def prepare(self, mark: EngineMark, *, dimensions: int) -> None:
        """Makes room for vectors of this length, with this mark, unless somebody just has."""

    def clear(self) -> None:
        """Drops all data and the mark."""

    def upsert(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Writes chunks under their sequence numbers; writing one twice changes nothing."""

    def delete(self, seqs: Sequence[int]) -> None:
        """Drops chunks by sequence number."""

    def search(
        self,
        queries: Vectors,
        *,
        k: int,
        where: ChunkFilter,
        up_to_seq: int,
        seqs: Sequence[int] | None = None,
        newer_than: EngineHit | None = None,
    ) -> list[list[EngineHit]]:
        """Returns the k most similar chunks of each query, best first.

        Obeys the scope and the times of `where`, but not its metadata, which can change: `seqs`
        lists the chunks that match. `up_to_seq` excludes later chunks, `newer_than` a hit and all
        that is older.
        """

    def vectors(self, seqs: Sequence[int]) -> dict[int, Vectors]:
        """Returns the vectors of the chunks that exist, by sequence number."""

    def successor(self) -> SearchEngine:
        """Returns a second set of data in the same place, which nobody searches yet."""

    def switch_to(self, successor: SearchEngine) -> None:
        """Makes the successor's data the ones that are searched, and drops the old ones."""

    def close(self) -> None:
        """Closes the connections."""


class RecencyBuffer(Protocol):
    """The short-term memory (STM): the most recent chunks of a scope, first in, first out."""

    @property
    def capacity(self) -> int:
        """The number of chunks it holds per scope."""

    def push(self, chunks: Sequence[Chunk]) -> None:
        """Adds chunks that the log has just stored."""

    def recent(self, where: ChunkFilter) -> tuple[Chunk, ...]:
        """Returns the most recent matching chunks, newest first."""

    def rebuild(self) -> None:
        """Drops what is cached and reads the log again."""

    def close(self) -> None:
        """Closes the buffer's connections; the log stays open."""


ScoreKind = Literal["pair", "glance", "stance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreKey:
    """What a cached score is: the model's, for a question, of one kind.

    A "pair" is the full score of an (older, newer) pair of chunk ids, a "glance" the quick one. A
    "stance" scores a chunk against an option of the question: (chunk id, number of the option).
    """

    scorer: str
    question: str
    kind: ScoreKind = "pair"


class ScoreCache(Protocol):
    """Keeps a model's scores. Chunks never change, so a score stays right.

    A lost score is only computed again.
    """

    def get(self, key: ScoreKey, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Returns the known scores."""

    def put(self, key: ScoreKey, scores: Mapping[tuple[str, str], float]) -> None:
        """Keeps scores of chunks that are in the log.

        Implementations look the chunks up in the writing transaction: one may have been forgotten
        while it was judged.
        """

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes the scores of these chunks."""

    def close(self) -> None:
        """Closes the cache's connections."""
