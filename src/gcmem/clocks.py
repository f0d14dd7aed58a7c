"""Decides what "now" is for a writer: its clock, or the newest event if that is slightly later.

With a clock that is slow or was set back, a new chunk would get an earlier time than an older one,
and the older one would win. So "now" is never before the newest event of the same user. This
corrects differences up to `Settings.max_skew`. Beyond that nobody knows which clock is right, and
the conflict is reported as skewed (`resolve.skew`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from gcmem.protocols import ChunkLog
from gcmem.types import ChunkFilter, Scope


def now_in(
    log: ChunkLog, scope: Scope, *, clock_now: datetime, max_skew: timedelta | None
) -> datetime:
    """Returns the event time for a chunk that is added now."""
    if max_skew is None:
        return clock_now
    # All of the user's agents and runs count, since their chunks may contradict each other.
    timeline = Scope(user_id=scope.user_id) if scope.user_id is not None else scope
    ahead = ChunkFilter(scope=timeline, after=clock_now, as_of=clock_now + max_skew)
    newest = next(iter(log.scan(ahead, by_time=True, newest_first=True, limit=1)), None)
    return clock_now if newest is None or newest.at is None else newest.at
