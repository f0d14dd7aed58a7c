"""Which pairs of a candidate set can conflict at all, and in which order they are put."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations

from gcmem.types import CandidateSet, Chunk

ASSISTANT = "assistant"
ROLES = frozenset({"user", ASSISTANT, "system", "tool"})
"""Speakers that are roles in a chat; any other speaker is somebody by name."""
UNDATED = datetime.min.replace(tzinfo=UTC)


def can_conflict(older: Chunk, newer: Chunk) -> bool:
    """Tells whether a pair is worth asking about: one user, two texts, and a possible witness.

    Of two named speakers each speaks for themself. What an assistant says unseats nobody else:
    it may be wrong, or have been read from memory.
    """
    one, other = older.speaker, newer.speaker
    if one != other and (other == ASSISTANT or ROLES.isdisjoint((one, other))):
        return False
    return older.scope.user_id == newer.scope.user_id and older.text != newer.text


def in_order(a: Chunk, b: Chunk) -> tuple[Chunk, Chunk]:
    """Older first; a pair that can't be ordered gets a fixed order, so that verdicts repeat."""
    a_is_older = a.precedes(b)
    if a_is_older is None:
        a_is_older = a.id < b.id
    return (a, b) if a_is_older else (b, a)


def possible_pairs(candidates: CandidateSet) -> list[tuple[Chunk, Chunk]]:
    """Returns every pair that can conflict, older first."""
    pairs = (in_order(a.chunk, b.chunk) for a, b in combinations(candidates, 2))
    return [(older, newer) for older, newer in pairs if _possible(older, newer)]


def _possible(older: Chunk, newer: Chunk) -> bool:
    """As `can_conflict`; of two that can't be ordered either may be the newer one."""
    if can_conflict(older, newer):
        return True
    return older.precedes(newer) is None and can_conflict(newer, older)


def by_time(chunk: Chunk) -> tuple[datetime, int, str]:
    """The key that sorts chunks oldest first, undated ones before all others."""
    return chunk.at or UNDATED, chunk.seq or 0, chunk.id
