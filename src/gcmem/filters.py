"""Checks the arguments of a read: scopes, times, metadata filters, k, limits, options."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gcmem.errors import InvalidFilterError, InvalidInputError
from gcmem.types import ChunkFilter, Scalar, Scope, is_storable

MAX_K = 1000
MAX_FILTER_KEYS = 50
MAX_FILTER_VALUES = 500
"""Maximum number of values in one filter, over all keys: engines reject larger queries."""
MAX_SEQ = 2**63 - 1
COLLECTIONS = (list, tuple, set, frozenset)
SCALARS = (str, int, float, bool, type(None))


def make_filter(
    user_id: str | None,
    agent_id: str | None,
    run_id: str | None,
    as_of: datetime | None,
    known_at: datetime | None,
    filters: Mapping[str, Any] | None,
) -> ChunkFilter:
    """Returns the checked arguments of a read as a filter."""
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidFilterError(
            f"filters={reprlib.repr(filters)}: pass a mapping of metadata values"
        )
    _check_size(filters or {})
    return ChunkFilter(
        scope=Scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        as_of=as_of,
        known_at=known_at,
        metadata=tuple(_condition(key, value) for key, value in (filters or {}).items()),
    )


def check_k(k: Any) -> None:
    """Raises unless k is a whole number from 1 to MAX_K."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
        raise InvalidInputError(f"k={k!r}: pass a whole number from 1 to {MAX_K}")


def check_ids(ids: Any) -> list[str]:
    """Returns chunk ids as a list; raises unless they are strings in a list, tuple or set."""
    if not isinstance(ids, (list, tuple, set, frozenset)) or not all(
        isinstance(chunk_id, str) for chunk_id in ids
    ):
        raise InvalidInputError(f"ids={reprlib.repr(ids)}: pass a list of chunk ids")
    return list(ids)


def check_seq(after_seq: Any) -> None:
    """Raises unless after_seq can be a sequence number."""
    if type(after_seq) is not int or not 0 <= after_seq <= MAX_SEQ:
        raise InvalidInputError(
            f"after_seq={reprlib.repr(after_seq)}: pass the sequence number of a chunk, or 0"
        )


def check_options(options: Any) -> None:
    """Raises unless options is a list of usable strings."""
    if (
        not isinstance(options, Sequence)
        or isinstance(options, str)
        or not all(isinstance(o, str) and o.strip() and is_storable(o) for o in options)
    ):
        raise InvalidInputError(
            f"options={reprlib.repr(options)}: pass a list of non-empty strings"
        )


def _check_size(filters: Mapping[Any, Any]) -> None:
    values = sum(len(v) if isinstance(v, COLLECTIONS) else 1 for v in filters.values())
    if len(filters) > MAX_FILTER_KEYS or values > MAX_FILTER_VALUES:
        raise InvalidFilterError(
            f"the filter has {len(filters)} keys and {values} values: at most {MAX_FILTER_KEYS} "
            f"keys and {MAX_FILTER_VALUES} values are allowed; split it into several searches"
        )


def _condition(key: Any, value: Any) -> tuple[str, Scalar | tuple[Scalar, ...]]:
    if not isinstance(key, str) or not key or not is_storable(key) or '"' in key or "\\" in key:
        raise InvalidFilterError(f"filter key {key!r}: pass a metadata key without quotes")
    members = tuple(value) if isinstance(value, COLLECTIONS) else (value,)
    if not members or not all(_is_scalar(member) for member in members):
        raise InvalidFilterError(
            f"filter {key}={reprlib.repr(value)}: pass a string, number, boolean or None, "
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
    if limit is not None and (type(limit) is not int or not 0 <= limit <= MAX_SEQ):
        raise InvalidInputError(
            f"limit={reprlib.repr(limit)}: pass a whole number from 0, or None for all"
        )
