"""Every extension point of gcmem: implement one of these protocols to plug something in.

All are synchronous and take batches. `gcmem.testing` has a conformance suite for each store part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gcmem.types import CandidateSet, Chunk, ChunkFilter, Conflict, Prompt, Reading, Resolution

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with (done, total) during long work."""


class Encoder(Protocol):
    """Turns texts into unit vectors; the same text always gives the same vector."""

    @property
    def id(self) -> str:
        """Name and version; a store records which encoder built it."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one L2-normalised row per text."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text; ingest uses it to split long texts."""


class ChunkLog(Protocol):
    """The append-only source of truth."""

    @property
    def location(self) -> str:
        """Where the log lives, for messages."""

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None until the first chunk is stored."""

    def append(
        self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str
    ) -> tuple[Chunk, ...]:
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

    def count(self, where: ChunkFilter) -> int:
        """Returns the number of matching chunks."""

    def set_metadata(self, chunk_id: str, metadata: Mapping[str, Any]) -> Chunk | None:
        """Replaces a chunk's metadata durably; returns None if there is no such chunk."""

    def delete(self, ids: Sequence[str]) -> int:
        """Deletes the chunks permanently and returns how many existed."""

    def reindex(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Re-embeds every chunk and returns their number; readers use the old vectors meanwhile."""

    def close(self) -> None:
        """Closes files and connections."""


@runtime_checkable
class VectorSource(Protocol):
    """Optional for a log: returns stored vectors, so that a migration need not embed again."""

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""


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
    """The medium-term memory (MTM): similarity over the log's vectors."""

    def search(
        self, queries: Vectors, *, k: int, where: ChunkFilter, frontier: int = 0
    ) -> list[list[tuple[str, float]]]:
        """Returns, for each query, the k most similar chunk ids with their cosine.

        With `frontier`, the chunks on the frontier follow, newest first: those for which fewer
        than `frontier` newer chunks are at least as similar. An engine that can't do this in one
        pass calls `gcmem.retrieve.search_frontier`, which searches one time range after another.
        """

    def score(self, queries: Vectors, ids: Sequence[str]) -> Vectors:
        """Returns the cosine of every query (rows) to every id (columns)."""

    def rebuild(self) -> None:
        """Drops what is cached and reads the log again."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A log, the index and buffer derived from it, and a cache of verdicts."""

    log: ChunkLog
    index: VectorIndex
    buffer: RecencyBuffer
    verdicts: VerdictCache | None = None

    def close(self) -> None:
        """Closes all parts."""
        if self.verdicts is not None:
            self.verdicts.close()
        self.buffer.close()
        self.log.close()


class ConflictOracle(Protocol):
    """κ: finds the pairs of a candidate set that can't both be true now."""

    @property
    def id(self) -> str:
        """Name and version; stored with every verdict."""

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicting pairs with their scores."""


class CandidateResolver(Protocol):
    """Decides which candidates are still true; `gcmem.resolve.Resolver` implements it."""

    @property
    def oracle(self) -> ConflictOracle:
        """The oracle that finds the conflicts."""

    def resolve(self, candidates: CandidateSet) -> Resolution:
        """Splits the candidates into kept ones and those that a newer candidate contradicts."""


class PairClassifier(Protocol):
    """Scores single pairs; `gcmem.judge.PairwiseOracle` turns it into an oracle."""

    @property
    def id(self) -> str:
        """Name and version."""

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns, for each (older, newer) pair, how likely they contradict, from 0 to 1."""


@runtime_checkable
class QuickClassifier(PairClassifier, Protocol):
    """A pair classifier that can also estimate scores quickly, to select pairs for `score`."""

    def glance(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns a rough estimate of each pair's score."""


class StanceClassifier(Protocol):
    """Reads single chunks: which answer to a question does the chunk support?"""

    @property
    def id(self) -> str:
        """Name and version."""

    def stances(
        self, question: str, options: Sequence[str], texts: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Returns, for each text, the probability of each option; the last is that of none."""


class AnswerClassifier(Protocol):
    """Reads single texts: does the text answer a question?"""

    @property
    def id(self) -> str:
        """Name and version."""

    def answers(self, question: str, texts: Sequence[str]) -> list[float]:
        """Returns, for each text, how likely it answers the question, from 0 to 1."""


class VerdictCache(Protocol):
    """Stores scores and conflicts. Chunks never change, so a verdict on two of them stays valid."""

    def get(
        self, oracle: str, question: str, pairs: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], float]:
        """Returns the known scores that an oracle gave pairs of chunk ids for a question."""

    def put(self, oracle: str, question: str, scores: Mapping[tuple[str, str], float]) -> None:
        """Stores scores of chunks that are in the log; a lost score is only computed again.

        Implementations look up both ids in the writing transaction: a chunk may have been
        forgotten while it was judged. The second id may also be `types.OPTION` with a number.
        """

    def link(self, conflicts: Sequence[Conflict]) -> None:
        """Stores conflicts between chunks in the log, as edges from the older to the newer."""

    def linked_up_to(self, oracle: str) -> int:
        """Returns the last sequence number an oracle has checked for conflicts, at first 0."""

    def set_linked_up_to(self, oracle: str, seq: int) -> None:
        """Stores the last sequence number an oracle has checked for conflicts."""

    def witnesses(self, oracle: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """Returns the newer chunks of an oracle's edges, by the older chunk's id."""

    def close(self) -> None:
        """Closes the cache's connections."""


class Reader(Protocol):
    """Answers a question from chunks."""

    @property
    def id(self) -> str:
        """Name and version."""

    def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
        """Returns one reading per prompt."""


class ChatModel(Protocol):
    """A language model behind a chat endpoint, with structured output."""

    @property
    def id(self) -> str:
        """The model's name."""

    def complete(
        self, *, system: str, user: str, schema: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Returns an object that follows `schema`, and the number of tokens used."""
