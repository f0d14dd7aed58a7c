"""Cursors between pages. A cursor names two memories or claims of the caller.

It has no sequence number: those count what everybody writes, so callers that are bound to a scope
never see them.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from gcmem.errors import ChunkNotFoundError, InvalidInputError
from gcmem.memory import Memory
from gcmem.types import Chunk, Claim, Scope

PATTERN = r"^[A-Za-z0-9_-]{1,4000}$"


def cursor_of(last: Chunk, following: Chunk) -> str:
    """Returns the cursor between two neighbours. It works while one of them exists."""
    return _encode([last.id, following.id])


def claim_cursor_of(last: Claim, following: Claim) -> str:
    """Returns the cursor between two claims. It works while the chunk of one of them exists."""
    return _encode([last.chunk.id, *last.span, following.chunk.id, *following.span])


def place_of(cursor: str, memory: Memory, *, scope: Scope) -> tuple[Chunk, bool]:
    """Returns the chunk at a cursor, and whether the page begins with it or after it."""
    match _decode(cursor):
        case [str(last), str(following)]:
            return _first_of(last, following, memory, scope=scope)
    raise _not_a_cursor(cursor)


def claim_place_of(cursor: str, memory: Memory, *, scope: Scope) -> Claim:
    """Returns the claim after which a page begins."""
    match _decode(cursor):
        case [str(last), int(), int(), str(following), int(), int()] as ids:
            chunk, begins = _first_of(last, following, memory, scope=scope)
            start, end = ids[4:] if begins else ids[1:3]
            if 0 <= start <= end <= len(chunk.text):
                # Claims come in descending order, so the page after a longer one begins with it.
                return Claim(chunk=chunk, span=(start, end + 1 if begins else end))
    raise _not_a_cursor(cursor)


def _first_of(last: str, following: str, memory: Memory, *, scope: Scope) -> tuple[Chunk, bool]:
    for chunk_id, begins in ((last, False), (following, True)):
        try:
            chunk = memory.get(
                chunk_id, user_id=scope.user_id, agent_id=scope.agent_id, run_id=scope.run_id
            )
        except ChunkNotFoundError:
            continue
        return chunk, begins
    raise InvalidInputError("the memories at this cursor were erased; start again without it")


def _encode(place: list[str | int]) -> str:
    written = json.dumps(place, ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(written).decode().rstrip("=")


def _decode(cursor: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None


def _not_a_cursor(cursor: str) -> InvalidInputError:
    return InvalidInputError(f"{cursor!r} is not a cursor: pass `next` of the previous page")
