"""Follows conflict edges from an older chunk to the newest one that contradicts it."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.protocols import Store
from gcmem.types import Chunk, ChunkFilter

MAX_HOPS = 32
"""Maximum length of a chain; the frontier finds the newest chunk of a longer one."""


def follow_edges(
    store: Store, ids: Sequence[str], *, oracle: str, where: ChunkFilter, limit: int
) -> list[Chunk]:
    """Returns at most `limit` chunks that known edges lead to from `ids`, newest first.

    A chain ends at a chunk that the filter excludes, for example one later than `as_of`.
    """
    if store.ledger is None:
        return []
    found: dict[str, Chunk] = {}
    seen = set(ids)
    ends: Sequence[str] = ids
    for _ in range(MAX_HOPS):
        known = store.ledger.conflicts(oracle, ends)
        new = dict.fromkeys(
            c.newer for edges in known.values() for c in edges if c.newer not in seen
        )
        chunks = {i: c for i, c in store.log.get(list(new)).items() if where.admits(c)}
        seen.update(new)
        found |= chunks
        ends = list(chunks)
        if not ends:
            break
    # The newest chunks matter most: they contradict the ones in between.
    newest_first = sorted(found.values(), key=lambda c: (c.at is None, c.at, c.seq), reverse=True)
    return newest_first[:limit]
