"""The shapes of replies, as OpenAPI shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from gcmem.types import AnswerPath, JudgeKind, Outcome

CHUNK: dict[str, Any] = {
    "id": "5f0c2f0e-2b0f-4a39-9d3c-0a4f3c1a7b11",
    "text": "I moved to Lisbon last week.",
    "at": "2026-03-01T09:00:00+00:00",
    "recorded_at": "2026-03-01T09:00:01+00:00",
    "seq": 42,
    "user_id": "ana",
    "agent_id": None,
    "run_id": None,
    "speaker": "user",
    "session": None,
    "metadata": {"channel": "chat"},
}

Place = tuple[int, int]
"""Where a piece of a text starts and ends, in characters."""
SeenView = Annotated[
    Literal["current", "past", "changes"],
    Field(description="What the question was taken to ask about: the present, the past, a change."),
]


class ChunkOut(BaseModel):
    """One memory."""

    model_config = ConfigDict(json_schema_extra={"examples": [CHUNK]})

    id: str
    text: str
    at: AwareDatetime
    recorded_at: AwareDatetime
    seq: int | None = Field(
        description="Its place in the log of all scopes; null for a key that is bound to a scope."
    )
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    speaker: str
    session: str | None
    metadata: dict[str, Any]
    trust: int = Field(description="How much its source is trusted: 0 is not at all, 1 is usual.")


class ShadowedBy(BaseModel):
    """The newer memory that ended this one, or may have, and who says so."""

    witness: str
    score: float
    oracle: str
    by: JudgeKind
    reason: str
    ended: list[str] = Field(
        description="The outdated sentences, if the rest still holds; empty if all is outdated."
    )


class KnownChunk(ChunkOut):
    """One memory, with what is known about it."""

    outcome: Outcome
    shadowed_by: ShadowedBy | None
    judged: bool = Field(
        description="Whether it was compared with other memories. If false, nobody knows whether "
        "it is still true: it is judged in the background, or by `gcmem judge`."
    )
    pinned: bool = Field(description="Whether a person says that it must never be left out.")
    rejected: list[str] = Field(
        description="Ids of newer memories of which a person says that they did not end this one."
    )


class Forgotten(BaseModel):
    """How many memories were erased, and whether bytes of them are still on disk."""

    forgotten: int
    left: int = Field(
        description="How many memories stay because they are trusted more than the key."
    )
    erasing: str | None = Field(
        description="Which bytes are still on disk, and when they go; null if none are. The "
        "memories can't be read any more in either case."
    )


class Memories(BaseModel):
    """The memories that were stored."""

    memories: list[ChunkOut]


class MemoryPage(Memories):
    """A page of memories in the order in which they were recorded."""

    next: str | None = Field(description="Pass it as `cursor` for the next page.")
    next_after_seq: int | None = Field(
        description="The same for `after_seq`; null for a key that is bound to a scope."
    )


class Timeline(BaseModel):
    """A page of the timeline."""

    memories: list[KnownChunk]
    next: str | None = Field(description="Pass it as `before` for the next page.")


class CandidateOut(BaseModel):
    """A memory that was retrieved."""

    memory: ChunkOut
    relevance: float
    origin: Literal["mtm", "stm", "edge"]
    struck: list[Place] = Field(
        description="Which parts of the stored text are outdated and left out of `memory.text`."
    )


class ConflictOut(BaseModel):
    """A verdict that two memories can't both be true now; the ids are theirs."""

    older: str
    newer: str
    score: float
    oracle: str = Field(description="Who judged: a model and its version, or a person's name.")
    by: JudgeKind | None = Field(
        description="The kind of judge; null if an oracle was asked for this reply."
    )
    reason: str | None = Field(description="Why, if the judge said so; null as `by` is.")


class VerdictOut(ConflictOut):
    """A person's word about two memories, as it was recorded."""

    score: float = Field(description="1: confirmed, 0: rejected, -1: taken back.")
    older_span: Place = Field(description="Which part of the older memory it is about.")
    newer_span: Place = Field(description="Which part of the newer memory it is about.")
    recorded_at: AwareDatetime


class ClaimOut(BaseModel):
    """A sentence of a memory that says how things are."""

    text: str
    at: AwareDatetime
    speaker: str
    memory: str = Field(description="The id of the memory that says so.")
    span: Place = Field(description="Where in the memory's text it stands.")


class ClaimPage(BaseModel):
    """Claims that still stand, newest first."""

    claims: list[ClaimOut]
    next: str | None = Field(description="Pass it as `cursor` for the next page.")
    pending: int = Field(
        description="How many memories of the scope wait to be judged, counted up to 1,000; "
        "claims of theirs may be missing."
    )


class SkewOut(BaseModel):
    """An undecided conflict, and by how many seconds its writers' clocks are known to disagree."""

    conflict: ConflictOut
    disagreement_s: float


class ShadowOut(BaseModel):
    """A memory that is no longer true, and the newer one that contradicts it."""

    candidate: CandidateOut
    witness: CandidateOut
    conflict: ConflictOut
    claim: str | None = Field(description="The sentence that is outdated; null for all of it.")
    witness_claim: str | None = Field(
        description="The sentence that ended it; null for the whole witness."
    )
    whole: bool = Field(
        description="False if other sentences still hold: the memory is kept without this one."
    )


class DoubtOut(BaseModel):
    """A memory that is kept but may be outdated, and the newer one that may have ended it."""

    candidate: CandidateOut
    witness: CandidateOut
    conflict: ConflictOut
    claim: str = Field(description="The sentence that may be outdated.")
    witness_claim: str = Field(description="The sentence that may have ended it.")


Unjudged = Annotated[
    list[str],
    Field(
        description="Ids of memories that nobody has judged yet, so they may be outdated. They "
        "are judged in the background."
    ),
]


class OracleOut(BaseModel):
    """The conflict oracle and its measured class."""

    id: str
    class_: Literal["optimal", "marginal", "unfit"] | None = Field(
        alias="class", description="Null: never measured."
    )


class TimingsOut(BaseModel):
    """Milliseconds spent in each stage."""

    encode: float
    retrieve: float
    conflict: float
    dominance: float
    read: float
    total: float


class SearchReply(BaseModel):
    """What is still true, what is not, and why."""

    query: str
    as_of: AwareDatetime | None
    view: SeenView
    kept: list[CandidateOut] = Field(
        description="What is still true; in the views `past` and `changes` also what is not. See "
        "`shadows` for that."
    )
    doubtful: list[DoubtOut]
    shadows: list[ShadowOut]
    unjudged: Unjudged
    undecided: list[ConflictOut]
    skewed: list[SkewOut] = Field(
        description="The undecided conflicts whose writers' clocks disagree."
    )
    outranked: list[ConflictOut] = Field(
        description="Conflicts whose newer memory is trusted less; both stay."
    )
    ranked: list[str] = Field(description="Ids, at most k, as `mode` presents them.")
    omitted: int = Field(
        description="How many memories, doubts, shadows and conflicts were left out because the "
        "reply reached its size limit; ask for fewer with `k`."
    )
    timings_ms: TimingsOut
    oracle: OracleOut


class AnswerOut(BaseModel):
    """The answer of one path."""

    path: AnswerPath
    text: str
    choice: str | None
    view: SeenView = Field(
        description="The view of the question. Only the path `gcmem` goes by it: in the views "
        "`past` and `changes` it reads what is outdated too."
    )
    kept: list[str] = Field(description="Ids of the memories that it read.")
    doubtful: list[DoubtOut]
    shadows: list[ShadowOut]
    unjudged: Unjudged


class AskReply(BaseModel):
    """The answers, and the candidates that all paths read."""

    answers: list[AnswerOut]
    candidates: list[CandidateOut]
    omitted: int = Field(
        description="How many memories, doubts and shadows were left out because the reply "
        "reached its size limit; ask for fewer with `k`."
    )
    timings_ms: TimingsOut


class DocumentShadowOut(BaseModel):
    """A document that is no longer true, and the newer one that contradicts it."""

    document: dict[str, Any]
    witness: dict[str, Any]
    score: float
    oracle: str


class ResolveReply(BaseModel):
    """Which documents are still true, which are not, and which pairs could not be ordered."""

    kept: list[dict[str, Any]]
    shadows: list[DocumentShadowOut]
    undecided: list[tuple[dict[str, Any], dict[str, Any]]]


class QualifyReply(OracleOut):
    """The oracle, whether it may remove memories, and the rule that decides it."""

    may_remove: bool
    rule: dict[str, float]


class Whoami(BaseModel):
    """The key of a request."""

    name: str | None = Field(description="Null if the server needs no key.")
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    read_only: bool
    untrusted: bool


class Health(BaseModel):
    """Whether the server works."""

    status: Literal["ok"]
