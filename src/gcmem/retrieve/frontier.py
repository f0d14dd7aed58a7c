"""The frontier of time and similarity, for engines that know only top-k with a filter."""

from __future__ import annotations

from dataclasses import replace

from gcmem.protocols import ChunkLog, VectorIndex, Vectors
from gcmem.types import Chunk, ChunkFilter


def search_frontier(
    index: VectorIndex, log: ChunkLog, queries: Vectors, *, depth: int, where: ChunkFilter
) -> list[list[tuple[str, float]]]:
    """Returns, for each query, the chunks that fewer than `depth` newer ones match, newest first.

    Asks for the most similar chunks, then for the most similar of those newer than the oldest of
    them, and so on: about depth · ln N queries. A range can't tell chunks of one moment apart, so
    of those only the most similar are found.
    """
    return [_one(index, log, query[None], depth, where) for query in queries]


def _one(
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
