"""Which pairs of a candidate set can conflict at all, and in which order they are put."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations

from gcmem.types import CandidateSet, Chunk

ASSISTANT = "assistant"
ROLES = frozenset({"user", ASSISTANT, "system", "tool"})
"""Speakers that are roles in a chat; any other speaker is somebody by name."""
UNDATED = datetime.min.replace(tzinfo=UTC)


def can_conflict(a: Chunk, b: Chunk) -> bool:
    """Tells whether a pair is worth asking about: one user, two texts, and a possible witness."""
    if a.scope.user_id != b.scope.user_id or a.text == b.text:
        return False
    if a.speaker == b.speaker:
        return True
    older, newer = in_order(a, b)
    if _may_unseat(newer, older):
        return True
    return older.precedes(newer) is None and _may_unseat(older, newer)  # either may be the newer


def _may_unseat(newer: Chunk, older: Chunk) -> bool:
    """Tells whether one speaker's words can make another's stale.

    Of two with names, each speaks for themself. What an assistant says unseats nobody else: it
    may be wrong, or have been read from memory.
    """
    return newer.speaker != ASSISTANT and not ROLES.isdisjoint((older.speaker, newer.speaker))


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
