"""How many bytes one request may store, compare and get back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from gcmem.errors import InvalidInputError
from gcmem.ingest.segment import segment
from gcmem.memory import Memory
from gcmem.serve.http import request_schemas as requests
from gcmem.serve.http.limits import Limits

OVERHEAD_BYTES = 1024
"""Bytes reserved for the fields around the memories of a reply."""


def json_bytes(value: Any) -> bytes:
    """Returns a value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


class Items(list[bytes]):
    """The items of a JSON list, each already serialized."""


def json_object(fields: Mapping[str, Any]) -> bytes:
    """Returns an object as JSON; a value of type Items becomes a list."""
    parts = [
        json_bytes(name)
        + b":"
        + (b"[" + b",".join(value) + b"]" if isinstance(value, Items) else json_bytes(value))
        for name, value in fields.items()
    ]
    return b"{" + b",".join(parts) + b"}"


def json_reply(content: bytes, status: int = 200) -> Response:
    """Returns serialized JSON as a response."""
    return Response(content, status, media_type="application/json")


class Room:
    """The bytes left in a reply; `omitted` counts the items that did not fit."""

    def __init__(self, limits: Limits) -> None:
        self._left = limits.reply_bytes - OVERHEAD_BYTES
        self.omitted = 0

    def spend(self, count: int) -> None:
        """Reserves bytes for a part that is always sent."""
        self._left -= count

    def take(self, items: Iterable[Mapping[str, Any]]) -> Items:
        """Returns the first items that fit, serialized; counts the others in `omitted`."""
        taken = Items()
        is_full = False
        for item in items:
            if not is_full:
                written = json_bytes(item)
                is_full = len(written) >= self._left
            if is_full:
                self.omitted += 1
            else:
                self.spend(len(written) + 1)
                taken.append(written)
        return taken

    def page(self, items: Sequence[Mapping[str, Any]]) -> Items:
        """Returns the first items like `take`, but at least one, so that paging advances."""
        if not items:
            return Items()
        first = json_bytes(items[0])
        self.spend(len(first) + 1)
        return Items([first, *self.take(items[1:])])


def check_stored(body: requests.AddRequest, *, memory: Memory, limits: Limits) -> None:
    """Raises if a request would store too much; each chunk has a copy of its metadata."""
    messages = [body.messages] if isinstance(body.messages, str) else body.messages
    copied = _size(body.metadata or {})
    total = 0
    for message in messages:
        text = message if isinstance(message, str) else message.content
        own = None if isinstance(message, str) else message.metadata
        each = copied + (_size(own) if own else 0)
        total += len(text.encode("utf-8", "surrogatepass"))
        total += each * _chunk_count(text, memory=memory, room=(limits.stored_bytes - total) / each)
        if total > limits.stored_bytes:
            raise InvalidInputError(
                f"this would store more than {limits.stored_bytes} bytes: metadata is copied to "
                "each message, and to each chunk of a long one; send several requests, or less "
                "metadata"
            )


def _size(value: Any) -> int:
    """Returns the size in bytes of an unchecked value as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _chunk_count(text: str, *, memory: Memory, room: float) -> int:
    """Returns how many chunks a text becomes, or an upper bound that is within `room`."""
    budget = memory.settings.chunk_tokens
    # A token has at least one character, and two neighbouring chunks don't fit into one.
    most = 1 if len(text) <= budget else 2 * len(text) // budget + 1
    if most <= room or room < 1:
        return most
    return len(segment(text, budget=budget, count_tokens=memory.encoder.count_tokens))


def check_comparable(documents: Sequence[Mapping[str, Any]], *, limits: Limits) -> None:
    """Raises if comparing all pairs of documents would cost too much."""
    pairs = len(documents) * (len(documents) - 1) // 2
    total = sum(len(json_bytes(document)) for document in documents) * (len(documents) - 1)
    if pairs > limits.resolve_pairs or total > limits.resolve_bytes:
        raise InvalidInputError(
            f"{len(documents)} documents make {pairs} pairs with {total} bytes in all; this server "
            f"compares at most {limits.resolve_pairs} pairs and {limits.resolve_bytes} bytes per "
            "request: send fewer or shorter documents"
        )
