"""Retrieval: MTM hits of every query, the STM beside them, each chunk once, frozen."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.protocols import Store, Vectors
from gcmem.types import Candidate, CandidateSet, ChunkFilter, Origin


def retrieve(
    store: Store,
    *,
    query: str,
    queries: Vectors,
    k: int,
    where: ChunkFilter,
    options: Sequence[str] = (),
    use_stm: bool = True,
) -> CandidateSet:
    """Returns the k most similar chunks and the recency buffer, most relevant first.

    A chunk's relevance is its best cosine to any of the queries.
    """
    relevance: dict[str, float] = {}
    for hits in store.index.search(queries, k=k, where=where):
        for chunk_id, score in hits:
            relevance[chunk_id] = max(score, relevance.get(chunk_id, score))
    best = sorted(relevance, key=lambda chunk_id: -relevance[chunk_id])[:k]
    chunks = store.log.get(best)  # one that was erased since the search is simply not there
    origins: dict[str, Origin] = dict.fromkeys(chunks, "mtm")
    if use_stm:
        recent = [c for c in store.buffer.recent(where) if c.id not in chunks]
        for chunk, scores in zip(
            recent, store.index.score(queries, [c.id for c in recent]).T, strict=True
        ):
            chunks[chunk.id], origins[chunk.id] = chunk, "stm"
            relevance[chunk.id] = float(scores.max())
    items = [
        Candidate(chunk=chunk, relevance=relevance[chunk_id], origin=origins[chunk_id])
        for chunk_id, chunk in chunks.items()
    ]
    items.sort(key=lambda item: (-item.relevance, -(item.chunk.seq or 0)))
    return CandidateSet(query=query, options=tuple(options), as_of=where.as_of, items=tuple(items))
