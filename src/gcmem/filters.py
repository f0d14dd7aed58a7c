"""What callers pass to a read, checked: scopes, times, metadata filters, k, limits, options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gcmem.errors import InvalidFilterError, InvalidInputError
from gcmem.types import ChunkFilter, Scalar, Scope, is_storable

MAX_K = 1000
SCALARS = (str, int, float, bool, type(None))


def make_filter(
    user_id: str | None,
    agent_id: str | None,
    run_id: str | None,
    as_of: datetime | None,
    known_at: datetime | None,
    filters: Mapping[str, Any] | None,
) -> ChunkFilter:
    """Returns the filter of a read."""
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidFilterError(f"filters={filters!r}: pass a mapping of metadata values")
    return ChunkFilter(
        scope=Scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        as_of=as_of,
        known_at=known_at,
        metadata=tuple(_condition(key, value) for key, value in (filters or {}).items()),
    )


def check_k(k: Any) -> None:
    """Raises unless k is a sensible whole number."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
        raise InvalidInputError(f"k={k!r}: pass a whole number from 1 to {MAX_K}")


def check_options(options: Any) -> None:
    """Raises unless options is a list of usable strings."""
    if (
        not isinstance(options, Sequence)
        or isinstance(options, str)
        or not all(isinstance(o, str) and o.strip() and is_storable(o) for o in options)
    ):
        raise InvalidInputError(f"options={options!r}: pass a list of non-empty strings")


def _condition(key: Any, value: Any) -> tuple[str, Scalar | tuple[Scalar, ...]]:
    if not isinstance(key, str) or not key or not is_storable(key) or '"' in key or "\\" in key:
        raise InvalidFilterError(f"filter key {key!r}: pass a metadata key without quotes")
    members = tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else (value,)
    if not members or not all(_is_scalar(member) for member in members):
        raise InvalidFilterError(
            f"filter {key}={value!r}: pass a string, number, boolean or None, "
            "or a list of them to match any"
        )
    return key, members


def _is_scalar(value: Any) -> bool:
    if isinstance(value, str):
        return is_storable(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        return False
    return type(value) in SCALARS and value == value  # NaN equals nothing, not even itself


def check_limit(limit: Any) -> None:
    """Raises unless limit is a whole number, or None."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InvalidInputError(f"limit={limit}: pass a whole number from 0, or None for all")
