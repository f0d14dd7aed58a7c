"""The frontier of time and similarity, for engines that support only top-k with a filter."""

from __future__ import annotations

from dataclasses import replace

from gcmem.protocols import ChunkLog, VectorIndex, Vectors
from gcmem.types import Chunk, ChunkFilter


def search_frontier(
    index: VectorIndex, log: ChunkLog, queries: Vectors, *, depth: int, where: ChunkFilter
) -> list[list[tuple[str, float]]]:
    """Returns the frontier of each query: chunks with fewer than `depth` newer ones as similar.

    Finds the `depth` most similar chunks, then the most similar among those newer than the oldest
    hit, and so on, in about depth · ln N searches. Of chunks with the same event time, it finds
    only the most similar.
    """
    return [_frontier(index, log, query[None], depth, where) for query in queries]


def _frontier(
    index: VectorIndex, log: ChunkLog, query: Vectors, depth: int, where: ChunkFilter
) -> list[tuple[str, float]]:
    found: dict[str, float] = {}
    chunks: dict[str, Chunk] = {}
    while hits := index.search(query, k=depth, where=where)[0]:
        found |= dict(hits)
        stored = log.get([chunk_id for chunk_id, _ in hits])
        times = [chunk.at for chunk in stored.values() if chunk.at is not None]
        if not times:
            break
        chunks |= stored
        where = replace(where, after=min(times))
    newest_first = sorted(chunks.values(), key=lambda c: (c.at, c.seq), reverse=True)
    return [(chunk.id, found[chunk.id]) for chunk in newest_first]
