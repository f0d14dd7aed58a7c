"""What the store suites share: how to open the store under test, fill it and ask it."""

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
    """Returns an unsaved chunk, its times counted in days from the suite's start."""
    return Chunk(
        id=str(uuid.uuid4()),
        text=text,
        at=START + timedelta(days=day),
        recorded_at=START + timedelta(days=recorded_day),
        scope=fields.pop("scope", Scope(user_id=user)),
        **fields,
    )


def texts(chunks: Any) -> list[str]:
    """Returns the texts of chunks, in their order."""
    return [c.text for c in chunks]


class StoreHarness(ABC):
    """Opens the store under test."""

    encoder: Encoder = HashEncoder()
    durable = True
    """Whether what was stored is there when the store is opened again."""
    shared = True
    """Whether several instances may use one store at the same time."""
    in_order = True
    """Whether a number never becomes visible after a higher one, however writers overlap."""

    @abstractmethod
    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        """Returns the store that belongs to `tmp_path`, with a buffer of 5 chunks.

        Each test has a path of its own, for which the store is empty at first; asked again with
        the same path, it is the same store.
        """

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """A fresh store, closed afterwards."""
        store = self.make_store(tmp_path, self.encoder)
        yield store
        store.close()

    @pytest.fixture
    def other(self, store: Store, tmp_path: Path) -> Iterator[Store]:
        """A second instance over the same store, as another process would have."""
        if not self.shared:
            yield store
            return
        other = self.make_store(tmp_path, self.encoder)
        yield other
        other.close()

    def put(self, store: Store, *chunks: Chunk) -> tuple[Chunk, ...]:
        """Appends chunks and tells the buffer."""
        vectors = self.encoder.encode(texts(chunks))
        stored = store.log.append(chunks, vectors, encoder_id=self.encoder.id)
        store.buffer.push(stored)
        return stored

    def found(self, store: Store, query: str, where: ChunkFilter = EVERYTHING) -> list[str]:
        """Returns the texts that the index finds, best first."""
        hits = store.index.search(self.encoder.encode([query]), k=100, where=where)[0]
        chunks = store.log.get([chunk_id for chunk_id, _ in hits])
        return [chunks[chunk_id].text for chunk_id, _ in hits]
