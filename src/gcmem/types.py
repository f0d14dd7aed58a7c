"""The frozen values that flow between the stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NoReturn

from gcmem.errors import InvalidInputError, InvalidScopeError, NaiveTimeError

Origin = Literal["mtm", "stm", "edge"]
Strategy = Literal["dense", "paper", "stratified"]
Fitness = Literal["optimal", "marginal", "unfit"]
"""How good an oracle was measured to be; an unfit one may not remove anything."""
Mode = Literal["drop", "demote", "annotate"]
AnswerPath = Literal["standard", "timestamp", "gcmem"]
PromptMode = Literal["forced-choice", "allow-unclear"]
Scalar = str | int | float | bool | None

MAX_SCOPE_ID_CHARS = 256
ORIGIN_KEY = "gcmem_origin"
"""The metadata key of a chunk that was merged in from another log: the id of that log's first.

Such a chunk keeps its recording time, so its place in this log says nothing about clocks."""

OPTION = "option "
"""In the verdict cache, the second part of a key may be this and a number instead of a chunk's id:
then the score is of a chunk and one of the options of the question."""

UNTRUSTED = 0
"""The trust level of a source that may lie: a web page, a stranger, a tool's output."""
TRUSTED = 1
"""The trust level of a source that is believed; higher levels are for those believed more."""
MAX_TRUST = 100


def utc(at: datetime, *, name: str) -> datetime:
    """Returns `at` in UTC; a naive datetime is an error that names the argument."""
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


class FrozenDict(dict[str, Any]):
    """A dict that can't be changed, so that a value that holds it stays what it was."""

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError("this mapping belongs to a frozen value; make a dict(...) of it to edit")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


def frozen(metadata: Mapping[str, Any] | None) -> FrozenDict:
    """Returns metadata that can't be changed; None is none."""
    if metadata is None:
        return FrozenDict()
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata={metadata!r}: pass a mapping, or None")
    return FrozenDict(metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory a chunk is; as a filter, a field left out matches every value."""

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
                    f"{name} has {len(value)} characters, at most {MAX_SCOPE_ID_CHARS} are allowed"
                )
            if not is_storable(value):
                raise InvalidScopeError(f"{name}={value!r} holds a NUL or a lone surrogate")

    def covers(self, other: Scope) -> bool:
        """Tells whether a query in this scope may see a chunk of `other`."""
        return (
            (self.user_id is None or self.user_id == other.user_id)
            and (self.agent_id is None or self.agent_id == other.agent_id)
            and (self.run_id is None or self.run_id == other.run_id)
        )

    def overlaps(self, other: Scope) -> bool:
        """Tells whether a chunk could be in both scopes."""
        pairs = (
            (self.user_id, other.user_id),
            (self.agent_id, other.agent_id),
            (self.run_id, other.run_id),
        )
        return all(mine is None or theirs is None or mine == theirs for mine, theirs in pairs)


def is_storable(text: str) -> bool:
    """Tells whether every store can keep `text`: no NUL, no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One utterance of a session; `at` left out means the moment it is added.

    A speaker or metadata of None are as good as left out. `id` becomes the id of its chunk; left
    out, the chunk gets a new one. A turn that is split into several chunks gives them `id`, `id.2`,
    `id.3` and so on.
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
    """One observation as the log keeps it: when it happened, when it was recorded, whose it is.

    `at` and `seq` are missing only in documents that never came from a log. `trust` is how far its
    source is believed; it is set by whoever runs the memory, never by what is remembered.
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
        """Tells whether this chunk is older than `other`; None where nothing decides it.

        Event time decides, equal times are broken by sequence number, and two undated chunks
        compare by sequence number alone. A dated and an undated chunk are never compared: mixing
        the two orders could make a cycle, in which every chunk would be older than another.
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

    `after` and `as_of` bound the event time (exclusive, inclusive), `known_at` the recording time.
    A metadata value that is a tuple matches any of its members.
    """

    scope: Scope = field(default_factory=Scope)
    after: datetime | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    metadata: tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...] = ()

    def __post_init__(self) -> None:
        for name in ("after", "as_of", "known_at"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, utc(value, name=name))

    def admits(self, chunk: Chunk) -> bool:
        """Tells whether a chunk of a log passes."""
        at, recorded_at = chunk.at, chunk.recorded_at
        return (
            self.scope.covers(chunk.scope)
            and (self.after is None or (at is not None and at > self.after))
            and (self.as_of is None or (at is not None and at <= self.as_of))
            and (
                self.known_at is None or (recorded_at is not None and recorded_at <= self.known_at)
            )
            and all(_has(chunk.metadata, key, value) for key, value in self.metadata)
        )


def _has(metadata: Mapping[str, Any], key: str, wanted: Scalar | tuple[Scalar, ...]) -> bool:
    if key not in metadata:
        return False
    value = metadata[key]
    members = wanted if isinstance(wanted, tuple) else (wanted,)
    return any(value == m and isinstance(value, bool) == isinstance(m, bool) for m in members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk that was retrieved, how relevant it is, and what brought it."""

    chunk: Chunk
    relevance: float
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """The frozen set that every answer path and the oracle see, most relevant first."""

    query: str
    items: tuple[Candidate, ...]
    options: tuple[str, ...] = ()
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.items, (tuple, list)) or not all(
            isinstance(item, Candidate) for item in self.items
        ):
            raise InvalidInputError("items of a candidate set: pass a tuple of Candidate")
        seen: set[str] = set()
        for item in self.items:
            if item.chunk.id in seen:
                raise InvalidInputError(f"chunk {item.chunk.id!r} is in the candidate set twice")
            seen.add(item.chunk.id)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """An oracle's verdict that two chunks can't both be true now."""

    older: str
    newer: str
    score: float
    oracle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """A candidate that a newer one contradicts, with the proof: the witness and the verdict."""

    candidate: Candidate
    witness: Candidate
    conflict: Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """A conflict left undecided since the clocks of its two writers disagree too much to order it.

    The disagreement is what the log proves, so the clocks may be further apart than that.
    """

    conflict: Conflict
    disagreement_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What temporal dominance leaves, what it takes out and why, and what it could not decide.

    `undecided` are conflicts that nothing puts in order, and `skewed` says which of them are so
    because of their writers' clocks; `outranked` are those in which the newer chunk is trusted
    less than the older one. Both ends of either stay.
    """

    kept: tuple[Candidate, ...]
    shadows: tuple[Shadow, ...]
    undecided: tuple[Conflict, ...]
    skewed: tuple[Skew, ...] = ()
    outranked: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a reader is asked: a question over chunks in the order in which it should see them."""

    question: str
    chunks: tuple[Chunk, ...]
    options: tuple[str, ...] = ()
    mode: PromptMode = "allow-unclear"
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A reader's reply: its words, and the option it chose (None: unclear).

    `source` is the id of the chunk that the answer comes from, where the reader knows it.
    """

    text: str
    choice: str | None = None
    tokens: int = 0
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Milliseconds spent in each stage of one call."""

    encode_ms: float = 0.0
    retrieve_ms: float = 0.0
    conflict_ms: float = 0.0
    dominance_ms: float = 0.0
    read_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        """The sum of all stages."""
        return (
            self.encode_ms + self.retrieve_ms + self.conflict_ms + self.dominance_ms + self.read_ms
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of one path over the frozen candidate set; timings are those of the whole call.

    `source` is the id of the chunk that the answer comes from; a language model does not say it.
    """

    text: str
    choice: str | None
    path: AnswerPath
    resolution: Resolution
    timings: Timings
    tokens: int = 0
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found: `kept` is live, `shadows` went and say why.

    `undecided` pairs contradict but can't be ordered in time, so both stay; `skewed` says which of
    them are so because the clocks of their writers disagree, and by how much.
    Iterates over `ranked`: at most k candidates as the mode presents them, which is kept alone
    ("drop"), kept before shadowed ("demote"), or both in the order of relevance ("annotate").
    """

    query: str
    as_of: datetime | None
    mode: Mode
    candidates: CandidateSet
    kept: tuple[Candidate, ...]
    shadows: tuple[Shadow, ...]
    undecided: tuple[Conflict, ...]
    ranked: tuple[Candidate, ...]
    timings: Timings
    skewed: tuple[Skew, ...] = ()
    outranked: tuple[Conflict, ...] = ()

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.ranked)

    def __len__(self) -> int:
        return len(self.ranked)

    def __getitem__(self, number: int) -> Candidate:
        return self.ranked[number]

    def shadow_of(self, chunk_id: str) -> Shadow | None:
        """Returns the shadow of a chunk with its witness, or None where the chunk is live."""
        return next((s for s in self.shadows if s.candidate.chunk.id == chunk_id), None)


def check_choice(value: str, *, name: str, allowed: Sequence[str]) -> None:
    """Raises an error that lists what is allowed when `value` is not."""
    if value not in allowed:
        raise InvalidInputError(f"{name}={value!r}: choose one of {', '.join(allowed)}")
