"""Checks what can be stored, by the same rules for every store.

Some engines can't store a NUL or a lone surrogate, so no store accepts them. Metadata must be plain
JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gcmem.errors import InvalidInputError
from gcmem.types import MAX_TRUST, Chunk, Scope, is_storable


def check_metadata(metadata: Any) -> dict[str, Any]:
    """Returns the metadata as a store will return it. Raises if it can't be stored."""
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise InvalidInputError("metadata must be a mapping whose keys are strings")
    if not metadata:
        return {}
    try:
        decoded: dict[str, Any] = json.loads(_as_json(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"metadata must be plain JSON: {error}") from None
    _check_strings(decoded)
    return decoded


def metadata_bytes(metadata: Mapping[str, Any]) -> int:
    """Returns the size of metadata as JSON, in bytes."""
    return len(_as_json(metadata).encode())


def check_chunks(chunks: Iterable[Chunk]) -> None:
    """Raises if a chunk can't be stored; the error names the first one.

    Every log calls this before it writes.
    """
    for chunk in chunks:
        try:
            _check(chunk)
        except InvalidInputError as error:
            raise InvalidInputError(f"chunk {chunk.id!r}: {error}") from None


def _check(chunk: Chunk) -> None:
    if chunk.id == "":
        raise InvalidInputError("its id is empty")
    for name in ("id", "text", "speaker", "session"):
        value = getattr(chunk, name)
        if value is None and name == "session":
            continue
        if not isinstance(value, str):
            raise InvalidInputError(f"{name}={value!r}: pass a string")
        if not is_storable(value):
            raise InvalidInputError(f"its {name} contains a NUL or a lone surrogate")
    for name in ("at", "recorded_at"):
        if not isinstance(getattr(chunk, name), datetime):
            raise InvalidInputError(f"it has no {name}: pass an aware datetime")
    if not isinstance(chunk.scope, Scope):
        raise InvalidInputError(f"scope={chunk.scope!r}: pass a Scope")
    if type(chunk.trust) is not int or not 0 <= chunk.trust <= MAX_TRUST:
        raise InvalidInputError(f"trust={chunk.trust!r}: pass a whole number from 0 to {MAX_TRUST}")
    check_metadata(chunk.metadata)


def _as_json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False)


def _check_strings(metadata: Mapping[str, Any]) -> None:
    """Checks every key and string at any depth, without recursion."""
    left: list[Any] = [metadata]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value)
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, str) and not is_storable(value):
            raise InvalidInputError(
                "metadata contains a NUL or a lone surrogate, which can't be stored; remove it"
            )
