"""Clock skew: where the log's own order proves that two writers' clocks disagree.

Sequence numbers come from the store, recording times from the writers. A chunk that was stored
first but claims to have been recorded later than the next one shows how far the two clocks are
apart, at least. Only the two chunks themselves are looked at: a verdict on a pair that hung on
the rest of the set would change with it, and Φ_T would no longer be idempotent.
"""

from __future__ import annotations

from datetime import timedelta

from gcmem.types import ORIGIN_KEY, Chunk


def skew_between(a: Chunk, b: Chunk, *, max_skew: timedelta | None) -> timedelta | None:
    """Returns by how much two clocks disagree where that leaves the order of the events open.

    None where they agree to within `max_skew`, where the events lie further apart than the
    disagreement, and where nothing is known.
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
    # A chunk merged in from another log was recorded long before it got its place in this one.
    if a.metadata.get(ORIGIN_KEY) != b.metadata.get(ORIGIN_KEY):
        return None
    first, second = a.recorded_at, b.recorded_at
    if first is None or second is None:
        return None
    return first - second if a.seq < b.seq else second - first
