"""Finds the chunks nearest to a claim, by meaning and by words."""

from __future__ import annotations

from gcmem.protocols import Store, Vectors
from gcmem.retrieve.candidates import find
from gcmem.types import Chunk, ChunkFilter


def neighbours(
    store: Store, text: str, vector: Vectors, where: ChunkFilter, *, k: int, lexical_weight: float
) -> list[Chunk]:
    """Returns the k chunks that fit the text best, among those that pass the filter."""
    _, nearest, _, _ = find(
        store, text, vector[None], where, k=k, depth=k, frontier=0, lexical_weight=lexical_weight
    )
    chunks = store.log.get(nearest[:k])
    return [chunks[chunk_id] for chunk_id in nearest[:k] if chunk_id in chunks]
