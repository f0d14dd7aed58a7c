"""Converts messages into turns: strings, turns, chat-API dicts, and lists of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from gcmem.errors import InvalidInputError, InvalidTextError
from gcmem.message_fields import TEXT_KEYS, TIME_KEYS, first, flatten
from gcmem.storable import check_metadata
from gcmem.times import parse_time
from gcmem.types import Turn, is_storable

Message = str | Turn | Mapping[str, Any]

SPEAKER_KEYS = ("speaker", "role", "from", "sender", "author", "user", "name")
SESSION_KEYS = ("session", "session_id", "conversation_id", "thread_id", "thread_ts")


def as_turns(
    messages: Message | Sequence[Message],
    *,
    at: datetime | None = None,
    speaker: str | None = None,
    session: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    tz: tzinfo | None = None,
) -> tuple[Turn, ...]:
    """Returns the messages as turns; the keyword arguments are defaults for missing values.

    Times without a timezone are read as `tz`; without `tz` they raise an error.
    """
    single = isinstance(messages, (str, Turn, Mapping))
    items: Sequence[Any] = [messages] if single else messages  # type: ignore[assignment]
    if not isinstance(items, Sequence) or isinstance(items, (bytes, bytearray)):
        raise InvalidInputError(
            f"can't add a {type(messages).__name__}: pass a string, a Turn, "
            "a {'role', 'content'} dict, or a list of them"
        )
    shared = check_metadata({} if metadata is None else metadata)
    turns = []
    for item in items:
        if not single and isinstance(item, Mapping) and is_textless(item):
            continue
        turn = _as_turn(item, tz=tz)
        turns.append(
            Turn(
                text=check_text(turn.text),
                at=turn.at or at,
                speaker=check_name(
                    turn.speaker if turn.speaker != "user" else speaker or "user", name="speaker"
                ),
                session=check_name(turn.session or session, name="session"),
                metadata={**shared, **check_metadata(turn.metadata)},
                id=check_name(turn.id, name="id"),
            )
        )
    return tuple(turns)


def _as_turn(item: Any, *, tz: tzinfo | None) -> Turn:
    if isinstance(item, Turn):
        return item
    if isinstance(item, str):
        return Turn(text=item)
    if isinstance(item, Mapping):
        return turn_from_dict(item, tz=tz)
    raise InvalidInputError(
        f"can't read a message of type {type(item).__name__}: "
        "pass a string, a Turn or a {'role', 'content'} dict"
    )


def turn_from_dict(message: Mapping[str, Any], *, tz: tzinfo | None = None) -> Turn:
    """Reads one chat-API message: its text and, if present, its time, speaker and session."""
    content = first(message, TEXT_KEYS)
    if content is None and any(message.get(key) == "" for key in TEXT_KEYS):
        content = ""
    if content is None:
        raise InvalidInputError(
            f"no text in {describe(message)}: put it under one of {', '.join(TEXT_KEYS)}"
        )
    when = first(message, TIME_KEYS)
    speaker = first(message, SPEAKER_KEYS)
    session = first(message, SESSION_KEYS)
    return Turn(
        text=flatten(content),
        at=None if when is None else parse_time(when, tz=tz),
        speaker="user" if speaker is None else _speaker(speaker),
        session=None if session is None else str(session),
        metadata=check_metadata(message.get("metadata") or {}),
    )


def is_textless(message: Mapping[str, Any]) -> bool:
    """Returns whether a chat-API message has content but no text, such as a tool call or image."""
    content = first(message, TEXT_KEYS)
    if content is None:
        return any(key in message and message[key] is None for key in TEXT_KEYS)
    return not isinstance(content, str) and not flatten(content).strip()


def _speaker(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("role") or value.get("name") or "user"
    known = {"human": "user", "gpt": "assistant", "bot": "assistant", "ai": "assistant"}
    return known.get(str(value).lower(), str(value))


def describe(message: Mapping[str, Any]) -> str:
    """Describes a message by its keys, for error messages."""
    return f"a message with the keys {', '.join(map(str, message)) or '(none)'}"


def check_text(text: Any, *, name: str = "text") -> str:
    """Returns the text; raises if it is empty or can't be stored."""
    if not isinstance(text, str):
        raise InvalidTextError(f"{name} must be a string, not {type(text).__name__}")
    if not text.strip():
        raise InvalidTextError(f"{name} is empty")
    if not is_storable(text):
        raise InvalidTextError(
            f"{name} contains a NUL or a lone surrogate, which can't be stored; clean it first, "
            "for example text.encode('utf-8', 'replace').decode().replace('\\0', '')"
        )
    return text


def check_name(value: Any, *, name: str) -> Any:
    """Returns a speaker, session or id; raises unless it is None or a usable string."""
    if value is None or (isinstance(value, str) and value.strip() and is_storable(value)):
        return value
    raise InvalidInputError(f"{name}={value!r}: pass a non-empty string")
