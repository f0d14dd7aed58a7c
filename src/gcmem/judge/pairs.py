"""Lists the pairs of a candidate set that can conflict, and puts them in order."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations

from gcmem.types import CandidateSet, Chunk

ASSISTANT = "assistant"
ROLES = frozenset({"user", ASSISTANT, "system", "tool"})
"""Speakers that are chat roles; any other speaker is a person's name."""
UNDATED = datetime.min.replace(tzinfo=UTC)


def can_conflict(a: Chunk, b: Chunk) -> bool:
    """Returns whether two chunks can conflict: same user, different texts, a possible witness."""
    if a.scope.user_id != b.scope.user_id or a.text == b.text:
        return False
    if a.speaker == b.speaker:
        return True
    older, newer = in_order(a, b)
    if _may_contradict(newer, older):
        return True
    return older.precedes(newer) is None and _may_contradict(
        older, newer
    )  # either may be the newer


def _may_contradict(newer: Chunk, older: Chunk) -> bool:
    """Returns whether one speaker's words can make another speaker's words stale.

    Two named people speak only for themselves. An assistant never contradicts anybody else: it
    may be wrong, or may repeat what it read from memory.
    """
    return newer.speaker != ASSISTANT and not ROLES.isdisjoint((older.speaker, newer.speaker))


def in_order(a: Chunk, b: Chunk) -> tuple[Chunk, Chunk]:
    """Returns the two chunks, older first; without usable times, in a fixed order (by id)."""
    a_is_older = a.precedes(b)
    if a_is_older is None:
        a_is_older = a.id < b.id
    return (a, b) if a_is_older else (b, a)


def possible_pairs(candidates: CandidateSet) -> list[tuple[Chunk, Chunk]]:
    """Returns every pair that can conflict, older chunk first."""
    return [
        in_order(a.chunk, b.chunk)
        for a, b in combinations(candidates, 2)
        if can_conflict(a.chunk, b.chunk)
    ]


def by_time(chunk: Chunk) -> tuple[datetime, int, str]:
    """Sort key: oldest first, undated chunks before all others."""
    return chunk.at or UNDATED, chunk.seq or 0, chunk.id
