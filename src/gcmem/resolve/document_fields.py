"""Finds text, time and user in documents of any type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any

from gcmem.errors import InvalidInputError
from gcmem.message_fields import TEXT_KEYS, TIME_KEYS, flatten
from gcmem.times import parse_time
from gcmem.types import Chunk, Scope

Key = str | Callable[[Any], Any]
"""A name to look up, or a function of the whole document."""

TEXT_NAMES = ("page_content", *TEXT_KEYS, "memory", "document")
TIME_NAMES = (
    *TIME_KEYS,
    *("valid_at", "event_time", "published_at", "published", "updated_at"),
    *("last_modified", "last_modified_date", "creation_date"),
)
METADATA_NAMES = ("metadata", "meta", "payload", "properties")
WRAPPERS = ("chunk", "node")
"""Attributes under which a scored hit holds its document."""
EARLIEST_GUESS = 100_000_000
"""Smaller numbers under a common name are years, durations or counts, not epoch times."""


def as_chunk(
    document: Any,
    *,
    number: int,
    text_key: Key | None = None,
    time_key: Key | None = None,
    tz: tzinfo = UTC,
) -> Chunk:
    """Reads a document as a chunk whose id is its number.

    Looks up explicit keys first, then common names, in the document and then in its metadata. An
    unreadable time raises an error under an explicit key and is ignored under a common name.
    """
    inner = _unwrap(document)
    if isinstance(inner, Chunk):
        return Chunk(
            id=str(number), text=inner.text, at=inner.at, seq=inner.seq,
            scope=inner.scope, speaker=inner.speaker,
        )  # fmt: skip
    try:
        return Chunk(
            id=str(number),
            text=_text(document, inner, text_key),
            at=_time(document, inner, time_key, tz),
            scope=Scope(user_id=_string(inner, "user_id")),
            speaker=_string(inner, "speaker") or "user",
        )
    except InvalidInputError as error:
        raise InvalidInputError(f"document {number} ({type(document).__name__}): {error}") from None


def _unwrap(document: Any) -> Any:
    """Returns the document inside a scored hit: (document, score), NodeWithScore, Candidate."""
    if isinstance(document, tuple) and len(document) == 2 and not isinstance(document[0], str):
        document = document[0]
    if isinstance(document, (str, tuple, Mapping)):
        return document
    inner = (getattr(document, name, None) for name in WRAPPERS)
    return next((thing for thing in inner if _is_object(thing)), document)


def _is_object(thing: Any) -> bool:
    return thing is not None and not callable(thing) and not isinstance(thing, (str, int, float))


def _text(document: Any, inner: Any, key: Key | None) -> str:
    if callable(key):
        found = key(document)
    elif key is not None:
        found = next(_values(inner, (key,)), None)
    elif isinstance(inner, str):
        found = inner
    elif _is_pair(inner):
        found = inner[0]
    else:
        found = next(_values(inner, TEXT_NAMES), None)
        content = getattr(inner, "get_content", None)
        if found is None and callable(content):
            found = content()
    if not isinstance(found, (str, Mapping, Sequence)) or not flatten(found).strip():
        expected = "text_key" if key else f"a text, (text, time), or one of {', '.join(TEXT_NAMES)}"
        raise InvalidInputError(f"has no text under {expected}")
    return flatten(found)


def _time(document: Any, inner: Any, key: Key | None, tz: tzinfo) -> datetime | None:
    if key is None and not _is_pair(inner):
        return next(_readable(_values(inner, TIME_NAMES), tz), None)
    if callable(key):
        found = key(document)
    elif key is not None:
        found = next(_values(inner, (key,)), None)
    else:
        found = inner[1]
    return None if found is None else _parse(found, tz)


def _is_pair(inner: Any) -> bool:
    return isinstance(inner, tuple) and len(inner) == 2


def _readable(values: Iterator[Any], tz: tzinfo) -> Iterator[datetime]:
    for value in values:
        if isinstance(value, (int, float)) and abs(value) < EARLIEST_GUESS:
            continue
        try:
            yield _parse(value, tz)
        except InvalidInputError:
            continue


def _parse(value: Any, tz: tzinfo) -> datetime:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(), tz)
    return parse_time(value, tz=tz)


def _string(inner: Any, name: str) -> str | None:
    value = next(_values(inner, (name,)), None)
    return value if isinstance(value, str) and value.strip() else None


def _values(inner: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yields the values under the names, first from the document and then from its metadata."""
    containers = (_look_up(inner, name) for name in METADATA_NAMES)
    for place in (inner, *(found for found in containers if isinstance(found, Mapping))):
        for name in names:
            value = _look_up(place, name)
            if not (value is None or callable(value) or _is_empty(value)):
                yield value


def _is_empty(value: Any) -> bool:
    return isinstance(value, (str, list)) and not value


def _look_up(place: Any, name: str) -> Any:
    return place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)
