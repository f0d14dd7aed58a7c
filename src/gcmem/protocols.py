"""Every seam of gcmem on one screen: implement one of these to plug something in.

All are synchronous and batch-shaped. `gcmem.testing` has a conformance suite for each store part.
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
        """Name and version; a store remembers which encoder built it."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one L2-normalised row a text."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns how many tokens each text has, so that ingest can keep chunks within reach."""


class ChunkLog(Protocol):
    """The append-only source of truth."""

    @property
    def location(self) -> str:
        """Where the log lives, for messages."""

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None while the log is empty and unclaimed."""

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
        """Yields matching chunks in log order, or by event time, at most `limit` of them."""

    def count(self, where: ChunkFilter) -> int:
        """Returns how many chunks match."""

    def set_metadata(self, chunk_id: str, metadata: Mapping[str, Any]) -> Chunk | None:
        """Replaces a chunk's metadata, durably; None if there is no such chunk."""

    def delete(self, ids: Sequence[str]) -> int:
        """Erases the chunks for good and returns how many there were."""

    def reindex(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Embeds every chunk anew and returns how many; readers see the old vectors until then."""

    def close(self) -> None:
        """Releases what the log holds open."""


@runtime_checkable
class VectorSource(Protocol):
    """What a log may also be: one that gives its vectors back, so that moving need not embed."""

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""


@runtime_checkable
class SlowEraser(Protocol):
    """What a log may also be: one that may need more time to erase than `delete` takes."""

    def erasing(self) -> str | None:
        """Says what is still to be erased and when it goes; None if there is nothing."""


@runtime_checkable
class BackupSource(Protocol):
    """What a log may also be: one that gcmem can back up."""

    def backup(
        self, path: Path, *, overwrite: bool = False, progress: Progress | None = None
    ) -> int:
        """Copies the store into a file while others use it, and returns how many chunks it has."""


class VectorIndex(Protocol):
    """The medium-term memory (MTM): similarity over the log's vectors."""

    def search(
        self, queries: Vectors, *, k: int, where: ChunkFilter, frontier: int = 0
    ) -> list[list[tuple[str, float]]]:
        """Returns, for each query, the k most similar chunk ids with their cosine.

        With `frontier`, those follow, newest first, that fewer than so many newer chunks match in
        similarity. An engine that can't do this in one pass calls
        `gcmem.retrieve.search_frontier`, which asks for one time range after the other.
        """

    def score(self, queries: Vectors, ids: Sequence[str]) -> Vectors:
        """Returns the cosine of every query (rows) to every id (columns)."""

    def rebuild(self) -> None:
        """Forgets what is cached and reads the log again."""


class RecencyBuffer(Protocol):
    """The short-term memory (STM): the most recent chunks of a scope, first in, first out."""

    @property
    def capacity(self) -> int:
        """How many chunks of a scope it holds."""

    def push(self, chunks: Sequence[Chunk]) -> None:
        """Takes in chunks that the log has just acknowledged."""

    def recent(self, where: ChunkFilter) -> tuple[Chunk, ...]:
        """Returns the most recent matching chunks, newest first."""

    def rebuild(self) -> None:
        """Forgets what is cached and reads the log again."""

    def close(self) -> None:
        """Releases what the buffer holds open; the log stays open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A log with the index and the buffer that are derived from it, and a cache of verdicts."""

    log: ChunkLog
    index: VectorIndex
    buffer: RecencyBuffer
    verdicts: VerdictCache | None = None

    def close(self) -> None:
        """Releases everything."""
        if self.verdicts is not None:
            self.verdicts.close()
        self.buffer.close()
        self.log.close()


class ConflictOracle(Protocol):
    """κ: finds the pairs of a candidate set that can't both be true now."""

    @property
    def id(self) -> str:
        """Name and version, carried by every verdict."""

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicting pairs with their scores."""


class CandidateResolver(Protocol):
    """Decides which candidates still hold; `gcmem.resolve.Resolver` is the one."""

    @property
    def oracle(self) -> ConflictOracle:
        """What finds the conflicts."""

    def resolve(self, candidates: CandidateSet) -> Resolution:
        """Splits the candidates into those that hold and those that a newer one contradicts."""


class PairClassifier(Protocol):
    """Scores single pairs; `gcmem.judge.PairwiseOracle` makes an oracle of it."""

    @property
    def id(self) -> str:
        """Name and version."""

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns, for each (older, newer), how surely they contradict, from 0 to 1."""


@runtime_checkable
class QuickClassifier(PairClassifier, Protocol):
    """A pair classifier that can also say at little cost which pairs are worth a closer look."""

    def glance(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns a first guess of each pair's score."""


class StanceClassifier(Protocol):
    """Reads single chunks: which of the answers to a question does it speak for?"""

    @property
    def id(self) -> str:
        """Name and version."""

    def stances(
        self, question: str, options: Sequence[str], texts: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Returns, for each text, the probability of every option, and last that of none."""


class AnswerClassifier(Protocol):
    """Reads single texts: does it answer a question?"""

    @property
    def id(self) -> str:
        """Name and version."""

    def answers(self, question: str, texts: Sequence[str]) -> list[float]:
        """Returns, for each text, how surely it answers the question, from 0 to 1."""


class VerdictCache(Protocol):
    """Remembers scores and conflicts: the past is immutable, so a verdict on two chunks is too."""

    def get(
        self, oracle: str, question: str, pairs: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], float]:
        """Returns the known scores of pairs of chunk ids, by an oracle, for a question."""

    def put(self, oracle: str, question: str, scores: Mapping[tuple[str, str], float]) -> None:
        """Keeps scores of chunks that are in the log; losing them costs time, never truth.

        Both ids are looked up in the transaction that writes: one of the chunks may have been
        forgotten while it was judged. The second part of a key may also be `types.OPTION` with a
        number.
        """

    def link(self, conflicts: Sequence[Conflict]) -> None:
        """Keeps conflicts between chunks that are in the log as edges from old to newer."""

    def linked_up_to(self, oracle: str) -> int:
        """Returns how far an oracle has searched the log for conflicts, 0 at first."""

    def set_linked_up_to(self, oracle: str, seq: int) -> None:
        """Keeps how far an oracle has searched the log."""

    def witnesses(self, oracle: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """Returns the newer ends of an oracle's edges, by the old end."""

    def close(self) -> None:
        """Releases what the cache holds open."""


class Reader(Protocol):
    """Answers a question from chunks."""

    @property
    def id(self) -> str:
        """Name and version."""

    def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
        """Returns one reading a prompt."""


class ChatModel(Protocol):
    """A language model behind a chat endpoint, with structured output."""

    @property
    def id(self) -> str:
        """The model's name."""

    def complete(
        self, *, system: str, user: str, schema: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Returns the object that follows `schema`, and the tokens that it cost."""
