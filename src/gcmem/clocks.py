"""What "now" is for a writer: its clock, unless the log has moved on already.

A clock that was set back, or that lags behind another writer's, would date what is said now before
what was said earlier, and the older word would win. So "now" is never before the newest event of
the same user. Only small disagreements are mended this way, up to `Settings.max_skew`: beyond it
nobody knows which clock is right, and the conflict is reported as skewed (`dominance.skew`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from gcmem.protocols import ChunkLog
from gcmem.types import ChunkFilter, Scope


def now_in(
    log: ChunkLog, scope: Scope, *, clock_now: datetime, max_skew: timedelta | None
) -> datetime:
    """Returns the moment at which something that is said now is placed in a scope's timeline."""
    if max_skew is None:
        return clock_now
    # A user's chunks may contradict each other across agents and runs; nobody else's count.
    timeline = Scope(user_id=scope.user_id) if scope.user_id is not None else scope
    ahead = ChunkFilter(scope=timeline, after=clock_now, as_of=clock_now + max_skew)
    newest = next(iter(log.scan(ahead, by_time=True, newest_first=True, limit=1)), None)
    return clock_now if newest is None or newest.at is None else newest.at
