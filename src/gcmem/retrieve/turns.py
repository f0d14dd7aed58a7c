"""Long turns are stored in pieces; several hits of one turn count once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gcmem.protocols import ChunkLog

PIECE = re.compile(r"(.+)\.(\d+)")


def pieces_last(ids: Sequence[str], log: ChunkLog) -> list[str]:
    """Returns chunk ids in their order, but with the further pieces of a turn at the end.

    The pieces of a turn are called `id`, `id.2`, `id.3` and so on, and follow each other in the
    log. Ids of that form that somebody else chose are left alone.
    """
    named = {i: match for i in ids if (match := PIECE.fullmatch(i))}
    if not named:
        return list(ids)
    stored = log.get(list({*named, *(match[1] for match in named.values())}))
    turns: dict[str, str] = {}
    for chunk_id, match in named.items():
        piece, first = stored.get(chunk_id), stored.get(match[1])
        if piece and first and (piece.seq or 0) - (first.seq or 0) == int(match[2]) - 1:
            turns[chunk_id] = first.id
    seen: set[str] = set()
    once: list[str] = []
    further: list[str] = []
    for chunk_id in ids:
        turn = turns.get(chunk_id, chunk_id)
        (further if turn in seen else once).append(chunk_id)
        seen.add(turn)
    return once + further
