"""Retrieval: collects the most relevant, the newest and the known contradicting chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gcmem.protocols import Store, Vectors
from gcmem.ranking import ranked
from gcmem.retrieve.edges import follow_edges
from gcmem.retrieve.fusion import DEPTH, Fusion
from gcmem.retrieve.turns import pieces_last
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
    judge: str | None = None,
    lexical_weight: float = 0.0,
) -> CandidateSet:
    """Returns the candidates, most relevant first; further pieces of a turn come last.

    The k most relevant chunks are always included. `stratified` adds up to `pool` candidates:
    first the frontier, then the recency buffer, then the next most relevant. With `judge`, the
    newer chunks of its verdicts are added. Relevance is the best cosine to any query, or
    with `lexical_weight`, which only `stratified` uses, a mean of meaning and words (`Fusion`).
    """
    stratified = strategy == "stratified"
    pool = max(k, pool or k) if stratified else k
    cosines, nearest, newest, fusion = find(
        store, query, queries, where,
        k=k, depth=pool, frontier=frontier if stratified else 0,
        lexical_weight=lexical_weight if stratified else 0.0,
    )  # fmt: skip
    recent = {} if strategy == "dense" else {c.id: c for c in store.buffer.recent(where)}
    chosen = list(dict.fromkeys((*nearest[:k], *newest, *recent, *nearest)))[:pool]
    linked: list[Chunk] = []
    if judge is not None:
        linked = follow_edges(store, chosen, judge=judge, where=where, limit=k)
        chosen = chosen[: max(k, pool - len(linked))]
    chunks = store.log.get(chosen)  # without those erased since the search
    found = {*nearest, *newest}
    origins: dict[str, Origin] = {i: "mtm" if i in found else "stm" for i in chunks}
    _add_missing(chunks, origins, linked, "edge")
    if strategy == "paper":
        _add_missing(chunks, origins, recent.values(), "stm")
    unscored = [chunk_id for chunk_id in chunks if chunk_id not in cosines]
    for chunk_id, scores in zip(unscored, store.index.score(queries, unscored).T, strict=True):
        cosines[chunk_id] = float(scores.max())
    items = {
        chunk_id: Candidate(
            chunk=chunk,
            relevance=fusion.relevance(chunk_id, cosines[chunk_id])
            if fusion
            else cosines[chunk_id],
            origin=origins[chunk_id],
        )
        for chunk_id, chunk in chunks.items()
    }
    ids = list(items)
    order = ranked([items[i].relevance for i in ids], [chunks[i].seq or 0 for i in ids])
    return CandidateSet(
        query=query,
        options=tuple(options),
        as_of=where.as_of,
        items=tuple(items[i] for i in pieces_last([ids[n] for n in order], store.log)),
    )


def find(
    store: Store,
    query: str,
    queries: Vectors,
    where: ChunkFilter,
    *,
    k: int,
    depth: int,
    frontier: int,
    lexical_weight: float,
) -> tuple[dict[str, float], list[str], list[str], Fusion | None]:
    """Returns known cosines, the most relevant chunks, the frontier, and how hits are joined."""
    words = store.words if lexical_weight else None
    depth = depth if words is None else max(depth, DEPTH)
    # With words, the k most relevant are not the most similar: the frontier must be seen whole.
    beyond = None if words is None else k
    hits = store.index.search(queries, k=depth, where=where, frontier=frontier, beyond=beyond)
    cosines: dict[str, float] = {}
    for chunk_id, score in (hit for found in hits for hit in found):
        cosines[chunk_id] = max(score, cosines.get(chunk_id, score))
    similar = list(dict.fromkeys(i for found in hits for i, _ in found[:depth]))
    newest = [i for found in hits for i, _ in found[depth:]]
    fusion = None
    relevance: dict[str, float] = {i: cosines[i] for i in similar}
    if words is not None:
        by_words = words.search(query, k=depth, where=where)
        fusion = Fusion.of(list(relevance.values()), by_words, lexical_weight=lexical_weight)
        similar = list(dict.fromkeys((*similar, *(i for i, _ in by_words))))
        relevance = {i: fusion.relevance(i, cosines.get(i, fusion.least)) for i in similar}
    # Equal ones stay in the order of the hits: newest first.
    order = ranked([relevance[i] for i in similar], range(len(similar), 0, -1))
    nearest = pieces_last([similar[n] for n in order], store.log)
    return cosines, nearest, newest, fusion


def _add_missing(
    chunks: dict[str, Chunk], origins: dict[str, Origin], more: Iterable[Chunk], origin: Origin
) -> None:
    for chunk in more:
        if chunk.id not in chunks:
            chunks[chunk.id], origins[chunk.id] = chunk, origin
