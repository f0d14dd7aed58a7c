"""Parses times in common formats."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, tzinfo
from typing import Any

from gcmem.errors import InvalidInputError
from gcmem.types import utc

EPOCH_TEXT = re.compile(r"-?\d{9,}(\.\d+)?")
"""Epoch times as text. Shorter numbers are dates such as 20250101, or mistakes."""
MILLISECONDS_FROM = 100_000_000_000
"""Larger epoch numbers are milliseconds: as seconds they would be after the year 5138."""


def parse_time(value: Any, *, tz: tzinfo | None = None) -> datetime:
    """Parses a datetime, an ISO 8601 string, or epoch seconds or milliseconds; returns UTC."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidInputError(f"can't read a time from {value!r}: pass an aware datetime")
    elif isinstance(value, str) and not EPOCH_TEXT.fullmatch(value.strip()):
        moment = _parse_iso(value)
    else:
        moment = _parse_epoch(value)
    if moment.tzinfo is None and tz is not None:
        moment = moment.replace(tzinfo=tz)
    if moment.tzinfo is None:
        raise InvalidInputError(
            f"the time {value!r} has no timezone: add an offset such as +00:00 or Z, or name the "
            "timezone (on the command line: --tz Europe/Rome)"
        )
    return utc(moment, name="time")


def _parse_epoch(value: str | int | float) -> datetime:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInputError("can't read a time: the number is too large")
    seconds = number / 1000 if abs(number) >= MILLISECONDS_FROM else number
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInputError(f"the time {value!r} is out of range") from None


def _parse_iso(value: str) -> datetime:
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        raise InvalidInputError(
            f"can't read the time {value!r}: write it as 2026-03-01T09:00:00+00:00"
        ) from None
