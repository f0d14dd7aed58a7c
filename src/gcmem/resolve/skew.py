"""Clock skew: finds pairs whose order in the log proves that two writers' clocks disagree.

Sequence numbers come from the store, recording times from the writers. If a chunk was stored first
but recorded later than another, the clocks differ by at least that much. Only the two chunks are
compared: if the rest of the set mattered, Φ_T would no longer be idempotent.
"""

from __future__ import annotations

from datetime import timedelta

from gcmem.types import ORIGIN_KEY, Chunk


def skew_between(a: Chunk, b: Chunk, *, max_skew: timedelta | None) -> timedelta | None:
    """Returns the disagreement of two clocks if it makes the order of the events uncertain.

    Returns None if the clocks agree within `max_skew`, if the events are further apart than the
    disagreement, or if nothing is known.
    """
    disagreement = _proven_disagreement(a, b)
    if max_skew is None or disagreement is None or disagreement <= max_skew:
        return None
    if a.at is None or b.at is None or abs(a.at - b.at) > disagreement:
        return None
    return disagreement


def _proven_disagreement(a: Chunk, b: Chunk) -> timedelta | None:
    if a.seq is None or b.seq is None or a.seq == b.seq:
        return None
    # A chunk imported from another log was recorded before it got its number in this one.
    if a.metadata.get(ORIGIN_KEY) != b.metadata.get(ORIGIN_KEY):
        return None
    first, second = a.recorded_at, b.recorded_at
    if first is None or second is None:
        return None
    return first - second if a.seq < b.seq else second - first
