"""Follows verdicts from an older chunk to the newest one that contradicts it."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.protocols import Store
from gcmem.types import Chunk, ChunkFilter

LEAST_SCORE = 0.5
"""A verdict with a lower score leads nowhere."""
MAX_HOPS = 32
"""Maximum length of a chain; the frontier finds the newest chunk of a longer one."""


def follow_edges(
    store: Store, ids: Sequence[str], *, judge: str, where: ChunkFilter, limit: int
) -> list[Chunk]:
    """Returns at most `limit` chunks that a judge's or a person's verdicts lead to from `ids`.

    Newest first.
    A chain ends at a chunk that the filter excludes, for example one later than `as_of`.
    """
    if store.ledger is None:
        return []
    found: dict[str, Chunk] = {}
    seen = set(ids)
    ends: Sequence[str] = ids
    for _ in range(MAX_HOPS):
        new = dict.fromkeys(
            verdict.newer
            for verdict in store.ledger.verdicts(ends)
            if verdict.newer not in seen
            and verdict.score >= LEAST_SCORE
            and (verdict.oracle == judge or verdict.by == "person")
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
