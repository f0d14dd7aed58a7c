"""Turns, chunks, and what selects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gcmem.errors import InvalidInputError, InvalidScopeError, NaiveTimeError
from gcmem.frozen import FrozenDict, frozen

Scalar = str | int | float | bool | None

MAX_SCOPE_ID_CHARS = 256
ORIGIN_KEY = "gcmem_origin"
"""Metadata key of a chunk merged in from another log: the id of that log's first chunk.

Such a chunk keeps its recording time, so its position in this log says nothing about clocks."""

UNTRUSTED = 0
"""The trust level of a source that may lie: a web page, a stranger, a tool's output."""
TRUSTED = 1
"""The trust level of an ordinary source; higher levels mean more trust."""
MAX_TRUST = 100


def utc(at: datetime, *, name: str) -> datetime:
    """Returns `at` in UTC; raises an error that names the argument if `at` has no timezone."""
    if not isinstance(at, datetime):
        raise InvalidInputError(f"{name}={at!r}: pass an aware datetime, not {type(at).__name__}")
    if at.tzinfo is UTC:
        return at
    if at.tzinfo is None or at.utcoffset() is None:
        raise NaiveTimeError(name, at)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise InvalidInputError(f"{name}={at!r} is out of range in UTC") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory a chunk belongs to. In a filter, a field that is None matches every value."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("user_id", "agent_id", "run_id"):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, str) or not value.strip():
                raise InvalidScopeError(f"{name}={value!r}: pass a non-empty string, or None")
            if len(value) > MAX_SCOPE_ID_CHARS:
                raise InvalidScopeError(
                    f"{name} has {len(value)} characters; at most {MAX_SCOPE_ID_CHARS} are allowed"
                )
            if not is_storable(value):
                raise InvalidScopeError(f"{name}={value!r} contains a NUL or a lone surrogate")

    def covers(self, other: Scope) -> bool:
        """Returns whether a query in this scope may see a chunk of `other`."""
        return (
            (self.user_id is None or self.user_id == other.user_id)
            and (self.agent_id is None or self.agent_id == other.agent_id)
            and (self.run_id is None or self.run_id == other.run_id)
        )

    def overlaps(self, other: Scope) -> bool:
        """Returns whether a chunk could be in both scopes."""
        pairs = (
            (self.user_id, other.user_id),
            (self.agent_id, other.agent_id),
            (self.run_id, other.run_id),
        )
        return all(mine is None or theirs is None or mine == theirs for mine, theirs in pairs)


def is_storable(text: str) -> bool:
    """Returns whether every store can keep `text`: it has no NUL and no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One utterance of a session; without `at`, it happened when it is added.

    None for speaker or metadata means the default. The chunk takes the turn's `id`, or a new one
    if there is none. If the turn is split, its chunks are called `id`, `id.2`, `id.3` and so on.
    """

    text: str
    at: datetime | None = None
    speaker: str = "user"
    session: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False)
    id: str | None = None

    def __post_init__(self) -> None:
        if self.at is not None:
            object.__setattr__(self, "at", utc(self.at, name="at"))
        if self.speaker is None:
            object.__setattr__(self, "speaker", "user")
        if type(self.metadata) is not FrozenDict:
            object.__setattr__(self, "metadata", frozen(self.metadata))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One observation in the log: its text, when it happened, when it was recorded, and its scope.

    `at` and `seq` are None only in documents that never came from a log. `trust` is the trust
    level of the source; whoever runs the memory sets it, never the text itself.
    """

    id: str
    text: str
    at: datetime | None
    recorded_at: datetime | None = None
    seq: int | None = None
    scope: Scope = field(default_factory=Scope)
    speaker: str = "user"
    session: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False)
    trust: int = TRUSTED

    def __post_init__(self) -> None:
        for name in ("at", "recorded_at"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, utc(value, name=name))
        if type(self.metadata) is not FrozenDict:
            object.__setattr__(self, "metadata", frozen(self.metadata))

    def precedes(self, other: Chunk) -> bool | None:
        """Returns whether this chunk is older than `other`; None if that can't be decided.

        Event time decides; the sequence number breaks ties and orders undated chunks. A dated and
        an undated chunk are never compared: mixing the two orders could make a cycle.
        """
        if self.at != other.at and (self.at is None or other.at is None):
            return None
        if self.at is not None and other.at is not None and self.at != other.at:
            return self.at < other.at
        if self.seq is None or other.seq is None or self.seq == other.seq:
            return None
        return self.seq < other.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFilter:
    """Which chunks a read may see: a scope, both times, and metadata values.

    `after` and `as_of` bound the event time (exclusive, inclusive), `known_at` the recording time,
    `before_seq` the sequence number (exclusive). A metadata value that is a tuple matches any of
    its members.
    """

    scope: Scope = field(default_factory=Scope)
    after: datetime | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    before_seq: int | None = None
    metadata: tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...] = ()

    def __post_init__(self) -> None:
        for name in ("after", "as_of", "known_at"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, utc(value, name=name))

    def admits(self, chunk: Chunk) -> bool:
        """Returns whether a chunk of a log passes the filter."""
        at, recorded_at = chunk.at, chunk.recorded_at
        return (
            self.scope.covers(chunk.scope)
            and (self.after is None or (at is not None and at > self.after))
            and (self.as_of is None or (at is not None and at <= self.as_of))
            and (
                self.known_at is None or (recorded_at is not None and recorded_at <= self.known_at)
            )
            and (self.before_seq is None or (chunk.seq is not None and chunk.seq < self.before_seq))
            and all(_has(chunk.metadata, key, value) for key, value in self.metadata)
        )


def _has(metadata: Mapping[str, Any], key: str, wanted: Scalar | tuple[Scalar, ...]) -> bool:
    if key not in metadata:
        return False
    value = metadata[key]
    members = wanted if isinstance(wanted, tuple) else (wanted,)
    return any(value == m and isinstance(value, bool) == isinstance(m, bool) for m in members)


def check_choice(value: str, *, name: str, allowed: Sequence[str]) -> None:
    """Raises an error that lists the allowed values if `value` is not one of them."""
    if value not in allowed:
        raise InvalidInputError(f"{name}={value!r}: choose one of {', '.join(allowed)}")
