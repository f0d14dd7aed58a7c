"""Which pairs of a candidate set can conflict at all, and in which order they are put."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations

from gcmem.types import CandidateSet, Chunk

ROLES = frozenset({"user", "assistant", "system", "tool"})
"""Speakers that are roles in a chat; any other speaker is somebody by name."""
UNDATED = datetime.min.replace(tzinfo=UTC)


def can_conflict(a: Chunk, b: Chunk) -> bool:
    """Tells whether a pair is worth asking about: one user, two texts, not two named speakers."""
    if a.speaker != b.speaker and ROLES.isdisjoint((a.speaker, b.speaker)):
        return False  # "I moved to Lyon" said by Ana is nothing to what Ben says of himself
    return a.scope.user_id == b.scope.user_id and a.text != b.text


def in_order(a: Chunk, b: Chunk) -> tuple[Chunk, Chunk]:
    """Older first; a pair that can't be ordered gets a fixed order, so that verdicts repeat."""
    a_is_older = a.precedes(b)
    if a_is_older is None:
        a_is_older = a.id < b.id
    return (a, b) if a_is_older else (b, a)


def possible_pairs(candidates: CandidateSet) -> list[tuple[Chunk, Chunk]]:
    """Returns every pair that can conflict, older first."""
    return [
        in_order(a.chunk, b.chunk)
        for a, b in combinations(candidates, 2)
        if can_conflict(a.chunk, b.chunk)
    ]


def by_time(chunk: Chunk) -> tuple[datetime, int, str]:
    """The key that sorts chunks oldest first, undated ones before all others."""
    return chunk.at or UNDATED, chunk.seq or 0, chunk.id
