"""Conflict edges, followed from an old chunk to the present."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.protocols import Store
from gcmem.types import Chunk, ChunkFilter

MOST_HOPS = 32
"""A chain longer than this is followed no further; the strata find its newest end."""


def trace(
    store: Store, ids: Sequence[str], *, oracle: str, where: ChunkFilter, most: int
) -> list[Chunk]:
    """Returns the chunks that known edges lead to from the given ones, at most so many.

    A witness that the read may not see (it is later than `as_of`, say) ends its chain.
    """
    if store.verdicts is None:
        return []
    found: dict[str, Chunk] = {}
    seen = set(ids)
    ends: Sequence[str] = ids
    for _ in range(MOST_HOPS):
        linked = store.verdicts.witnesses(oracle, ends)
        new = dict.fromkeys(w for newer in linked.values() for w in newer if w not in seen)
        chunks = {i: c for i, c in store.log.get(list(new)).items() if where.admits(c)}
        seen.update(new)
        found |= chunks
        ends = list(chunks)
        if not ends:
            break
    # The newest ends matter most: they shadow whatever lies between.
    newest_first = sorted(found.values(), key=lambda c: (c.at is None, c.at, c.seq), reverse=True)
    return newest_first[:most]
