"""Retrieval: collects the most similar, the newest and the known contradicting chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gcmem.protocols import Store, Vectors
from gcmem.ranking import ranked
from gcmem.retrieve.edges import follow_edges
from gcmem.types import Candidate, CandidateSet, Chunk, ChunkFilter, Origin, Strategy


def retrieve(
    store: Store,
    *,
    query: str,
    queries: Vectors,
    k: int,
    where: ChunkFilter,
    options: Sequence[str] = (),
    strategy: Strategy = "stratified",
    frontier: int = 2,
    pool: int | None = None,
    oracle: str | None = None,
) -> CandidateSet:
    """Returns the candidates, most relevant first; relevance is the best cosine to any query.

    The k most similar chunks are always included. `stratified` adds up to `pool` candidates: first
    the frontier, then the recency buffer, then the next most similar. With `oracle`, the newer
    chunks of its known conflicts are added.
    """
    stratified = strategy == "stratified"
    pool = max(k, pool or k) if stratified else k
    hits = store.index.search(queries, k=pool, where=where, frontier=frontier if stratified else 0)
    relevance: dict[str, float] = {}
    for chunk_id, score in (hit for found in hits for hit in found):
        relevance[chunk_id] = max(score, relevance.get(chunk_id, score))
    similar = list(dict.fromkeys(i for found in hits for i, _ in found[:pool]))
    # The index returns equal scores newest first; the sort keeps that order.
    order = ranked([relevance[i] for i in similar], range(len(similar), 0, -1))
    nearest = [similar[n] for n in order]
    newest = [i for found in hits for i, _ in found[pool:]]
    recent = {} if strategy == "dense" else {c.id: c for c in store.buffer.recent(where)}
    chosen = list(dict.fromkeys((*nearest[:k], *newest, *recent, *nearest)))[:pool]
    linked: list[Chunk] = []
    if oracle is not None:
        linked = follow_edges(store, chosen, oracle=oracle, where=where, limit=k)
        chosen = chosen[: max(k, pool - len(linked))]
    chunks = store.log.get(chosen)  # without those erased since the search
    origins: dict[str, Origin] = {i: "mtm" if i in relevance else "stm" for i in chunks}
    _add_missing(chunks, origins, linked, "edge")
    if strategy == "paper":
        _add_missing(chunks, origins, recent.values(), "stm")
    unscored = [chunk_id for chunk_id in chunks if chunk_id not in relevance]
    for chunk_id, scores in zip(unscored, store.index.score(queries, unscored).T, strict=True):
        relevance[chunk_id] = float(scores.max())
    items = [
        Candidate(chunk=chunk, relevance=relevance[chunk_id], origin=origins[chunk_id])
        for chunk_id, chunk in chunks.items()
    ]
    order = ranked([item.relevance for item in items], [item.chunk.seq or 0 for item in items])
    return CandidateSet(
        query=query,
        options=tuple(options),
        as_of=where.as_of,
        items=tuple(items[n] for n in order),
    )


def _add_missing(
    chunks: dict[str, Chunk], origins: dict[str, Origin], more: Iterable[Chunk], origin: Origin
) -> None:
    for chunk in more:
        if chunk.id not in chunks:
            chunks[chunk.id], origins[chunk.id] = chunk, origin
