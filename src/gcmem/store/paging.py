"""Reads rows page by page, so that no reader holds a connection or a lock for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

PAGE = 1000
SEQ, AT = 0, 5
"""Where a chunk's row has its sequence number and its event time."""

Row = tuple[Any, ...]
ReadPage = Callable[[Row, int], Sequence[Row]]
"""Returns at most so many rows after a key; the empty key is the beginning."""


def paged(read: ReadPage, *, by_time: bool, limit: int | None) -> Iterator[Row]:
    """Yields at most `limit` rows; the key is the sequence number, or event time and number."""
    last: Row = ()
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        rows = read(last, size)
        yield from rows
        if len(rows) < size:
            return
        last = (rows[-1][AT], rows[-1][SEQ]) if by_time else (rows[-1][SEQ],)
        left = None if left is None else left - size
