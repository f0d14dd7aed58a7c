"""Cursors between pages. A cursor names two memories of the caller, never a sequence number.

Sequence numbers count what everybody writes, so callers that are bound to a scope never see them.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from gcmem.errors import ChunkNotFoundError, InvalidInputError
from gcmem.memory import Memory
from gcmem.types import Chunk, Scope

PATTERN = r"^[A-Za-z0-9_-]{1,4000}$"


def cursor_of(last: Chunk, following: Chunk) -> str:
    """Returns the cursor between two neighbours. It works while one of them exists."""
    ids = json.dumps([last.id, following.id], ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(ids).decode().rstrip("=")


def place_of(cursor: str, memory: Memory, *, scope: Scope) -> tuple[Chunk, bool]:
    """Returns the chunk at a cursor, and whether the page begins with it or after it."""
    last, following = _ids(cursor)
    for chunk_id, begins in ((last, False), (following, True)):
        try:
            chunk = memory.get(
                chunk_id, user_id=scope.user_id, agent_id=scope.agent_id, run_id=scope.run_id
            )
        except ChunkNotFoundError:
            continue
        return chunk, begins
    raise InvalidInputError("the memories at this cursor were erased; start again without it")


def _ids(cursor: str) -> tuple[str, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        ids: Any = json.loads(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValueError, RecursionError):
        ids = None
    match ids:
        case [str(last), str(following)]:
            return last, following
    raise InvalidInputError(f"{cursor!r} is not a cursor: pass `next` of the previous page")
