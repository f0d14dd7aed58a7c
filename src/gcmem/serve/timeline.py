"""Pages of the timeline, each chunk with the newer one that is known to contradict it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gcmem.errors import InvalidInputError
from gcmem.memory import Memory
from gcmem.outdated import Witness, known_witnesses
from gcmem.types import Chunk, ChunkFilter

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a timeline; `next` continues it, None at its end."""

    chunks: tuple[Chunk, ...]
    witnesses: dict[str, Witness]
    next: str | None


def page_of(
    memory: Memory, where: ChunkFilter, *, newest_first: bool, limit: int, before: str | None
) -> Page:
    """Returns one page; a cursor is an event time and a sequence number, so that appends between
    two pages neither repeat nor hide a chunk.
    """
    chunks = _read(memory, where, newest_first=newest_first, limit=limit + 1, before=before)
    shown = chunks[:limit]
    return Page(
        chunks=shown,
        witnesses=known_witnesses(
            memory.store,
            shown,
            oracle=memory.oracle.id,
            where=where,
            respect_trust=memory.settings.respect_trust,
        ),
        next=_cursor(shown[-1]) if len(chunks) > limit else None,
    )


def _read(
    memory: Memory, where: ChunkFilter, *, newest_first: bool, limit: int, before: str | None
) -> tuple[Chunk, ...]:
    """Returns the next chunks; those of the cursor's own moment that were shown are skipped."""
    scan = memory.store.log.scan
    if before is None:
        return tuple(scan(where, by_time=True, newest_first=newest_first, limit=limit))
    at, seq = _position(before)
    if newest_first:
        where = replace(where, as_of=at if where.as_of is None else min(at, where.as_of))
    else:
        after = at - MICROSECOND
        where = replace(where, after=after if where.after is None else max(after, where.after))
    # A store can't start behind a sequence number by time, so more is read until enough is new:
    # rarely more than once, since few chunks share a moment.
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


def _cursor(chunk: Chunk) -> str:
    at = chunk.at or EPOCH
    return f"{(at - EPOCH) // MICROSECOND}.{chunk.seq}"


def _position(cursor: str) -> tuple[datetime, int]:
    micros, _, seq = cursor.partition(".")
    try:
        # One later and back: the first moment there is has none before it.
        at = EPOCH + timedelta(microseconds=int(micros) - 1) + MICROSECOND
        return at, int(seq)
    except (ValueError, OverflowError):
        raise InvalidInputError(f"before={cursor!r}: pass `next` of the page before") from None
