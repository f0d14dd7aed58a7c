"""The common field names for the text and time of messages and documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gcmem.errors import InvalidInputError

TEXT_KEYS = ("text", "content", "value", "message", "body")
TIME_KEYS = ("at", "timestamp", "created_at", "create_time", "time", "date", "ts", "datetime")


def first(message: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Returns the first non-empty value under the keys, or None."""
    return next((message[key] for key in keys if message.get(key) not in (None, "", [])), None)


def flatten(content: Any) -> str:
    """Joins the text parts of a message; skips images and tool calls."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        inner = content.get("text") or content.get("parts") or content.get("content") or ""
        return flatten(inner)
    if isinstance(content, Sequence):
        parts = (flatten(part) for part in content if isinstance(part, (str, Mapping)))
        return "\n".join(part for part in parts if part)
    raise InvalidInputError(f"can't read message text from a {type(content).__name__}")
