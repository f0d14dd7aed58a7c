"""Pages of the timeline, each chunk with the newer one that ended it or may have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gcmem.memory import Memory
from gcmem.outdated import Known, what_is_known
from gcmem.serve.http.cursors import cursor_of, place_of
from gcmem.types import Chunk, ChunkFilter

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a timeline; `next` continues it, None at its end."""

    chunks: tuple[Chunk, ...]
    known: Known
    next: str | None


def page_of(
    memory: Memory, where: ChunkFilter, *, newest_first: bool, limit: int, before: str | None
) -> Page:
    """Returns one page. Chunks added between two pages neither repeat nor hide others."""
    chunks = _read(memory, where, newest_first=newest_first, limit=limit + 1, before=before)
    shown = chunks[:limit]
    return Page(
        chunks=shown,
        known=what_is_known(memory, shown, where=where),
        next=cursor_of(shown[-1], chunks[limit]) if len(chunks) > limit else None,
    )


def _read(
    memory: Memory, where: ChunkFilter, *, newest_first: bool, limit: int, before: str | None
) -> tuple[Chunk, ...]:
    """Returns the next chunks; skips those at the cursor's time that were already shown."""
    scan = memory.store.log.scan
    if before is None:
        return tuple(scan(where, by_time=True, newest_first=newest_first, limit=limit))
    chunk, begins = place_of(before, memory, scope=where.scope)
    at, seq = chunk.at or EPOCH, chunk.seq or 0
    if begins:
        seq += 1 if newest_first else -1
    if newest_first:
        where = replace(where, as_of=at if where.as_of is None else min(at, where.as_of))
    else:
        # Nothing is earlier than the first representable time.
        after = at - MICROSECOND if at > FIRST else None
        where = replace(where, after=max(filter(None, (after, where.after)), default=None))
    # A scan by time can't start after a sequence number, so it grows until enough chunks are new.
    # Few chunks share a time, so it rarely runs twice.
    size = limit + 1
    while True:
        rows = list(scan(where, by_time=True, newest_first=newest_first, limit=size))
        fresh = [
            c
            for c in rows
            if c.at != at or ((c.seq or 0) < seq if newest_first else (c.seq or 0) > seq)
        ]
        if len(fresh) >= limit or len(rows) < size:
            return tuple(fresh[:limit])
        size *= 2
