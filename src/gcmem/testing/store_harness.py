"""What the store suites share: opening, filling and searching the store under test."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gcmem.protocols import Encoder, Store
from gcmem.testing.fakes import HashEncoder
from gcmem.types import Chunk, ChunkFilter, Scope

START = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = ChunkFilter()


def chunk(
    text: str, *, day: float = 0, recorded_day: float = 0, user: str | None = None, **fields: Any
) -> Chunk:
    """Returns a chunk that is not stored yet; times are in days from START."""
    return Chunk(
        id=str(uuid.uuid4()),
        text=text,
        at=START + timedelta(days=day),
        recorded_at=START + timedelta(days=recorded_day),
        scope=fields.pop("scope", Scope(user_id=user)),
        **fields,
    )


def texts(chunks: Any) -> list[str]:
    """Returns the texts of chunks, in order."""
    return [c.text for c in chunks]


class StoreHarness(ABC):
    """Opens the store under test."""

    encoder: Encoder = HashEncoder()
    durable = True
    """Whether stored chunks are still there when the store is opened again."""
    shared = True
    """Whether several instances may use one store at the same time."""

    @abstractmethod
    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        """Returns the store for `tmp_path`, with a buffer of 5 chunks.

        Each test has its own path, whose store is empty at first. The same path must return the
        same store.
        """

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """A new store, closed afterwards."""
        store = self.make_store(tmp_path, self.encoder)
        yield store
        store.close()

    @pytest.fixture
    def other(self, store: Store, tmp_path: Path) -> Iterator[Store]:
        """A second instance of the same store, as another process would open it."""
        if not self.shared:
            yield store
            return
        other = self.make_store(tmp_path, self.encoder)
        yield other
        other.close()

    def put(self, store: Store, *chunks: Chunk) -> tuple[Chunk, ...]:
        """Appends chunks to the store."""
        vectors = self.encoder.encode(texts(chunks))
        return store.append(chunks, vectors, encoder_id=self.encoder.id)

    def found(self, store: Store, query: str, where: ChunkFilter = EVERYTHING) -> list[str]:
        """Returns the texts that the index finds, best first."""
        hits = store.index.search(self.encoder.encode([query]), k=100, where=where)[0]
        chunks = store.log.get([chunk_id for chunk_id, _ in hits])
        return [chunks[chunk_id].text for chunk_id, _ in hits]
