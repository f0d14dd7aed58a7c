"""The shapes of requests and replies, as OpenAPI shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from gcmem.serve.http.cursors import PATTERN
from gcmem.types import MAX_SCOPE_ID_CHARS, AnswerPath, Mode, PromptMode, Scope

MAX_MESSAGES = 256
MAX_DOCUMENTS = 64
MAX_OPTIONS = 32
MAX_K = 100
MAX_PAGE = 1000
MAX_QUERY_CHARS = 10_000
MAX_SEQ = 2**63 - 1


def _check_is_text(value: Any) -> Any:
    """Refuses numbers: they could be seconds or milliseconds."""
    if not isinstance(value, str) or not value[:4].isdigit() or value[4:5] != "-":
        raise ValueError("write a time as 2026-03-01T09:00:00Z")
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_check_is_text)]
K = Annotated[int, Field(strict=True, ge=1, le=MAX_K)]
ScopeId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SCOPE_ID_CHARS)]
Text = Annotated[str, StringConstraints(min_length=1)]
Query = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SCOPE_ID_CHARS)]
Options = Annotated[list[Query], Field(max_length=MAX_OPTIONS)]
Filters = dict[str, Any]

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


def _example(example: dict[str, Any], *, closed: bool = True) -> ConfigDict:
    # A misspelt scope field must not widen what is asked for, so unknown fields are refused.
    return ConfigDict(
        extra="forbid" if closed else "allow", json_schema_extra={"examples": [example]}
    )


class Scoped(BaseModel):
    """The scope of a request. A field that is left out takes the key's value."""

    user_id: ScopeId | None = None
    agent_id: ScopeId | None = None
    run_id: ScopeId | None = None

    def asked_scope(self) -> Scope:
        """Returns the scope as the request names it."""
        return Scope(user_id=self.user_id, agent_id=self.agent_id, run_id=self.run_id)


class MessageIn(BaseModel):
    """One message of a conversation."""

    model_config = _example({"role": "user", "content": "I moved to Lisbon last week."})

    role: Label = "user"
    content: Text
    at: Time | None = Field(None, description="When it happened; default: now.")
    speaker: Label | None = Field(None, description="Who said it, if the role is not enough.")
    metadata: dict[str, Any] | None = None


class AddRequest(Scoped):
    """What to remember."""

    model_config = _example(
        {
            "messages": [{"role": "user", "content": "I moved to Lisbon last week."}],
            "user_id": "ana",
            "at": "2026-03-01T09:00:00Z",
        }
    )

    messages: Text | Annotated[list[Text | MessageIn], Field(min_length=1, max_length=MAX_MESSAGES)]
    at: Time | None = Field(None, description="The time of messages without one.")
    session: Label | None = None
    metadata: dict[str, Any] | None = None


class SearchRequest(Scoped):
    """What to look for."""

    model_config = _example({"query": "Where does Ana live?", "user_id": "ana", "k": 5})

    query: Query
    k: K = 10
    as_of: Time | None = Field(None, description="What was true then.")
    known_at: Time | None = Field(None, description="What the memory knew then.")
    filters: Filters | None = Field(None, description="Metadata values that must match.")
    mode: Mode = Field(
        "drop",
        description="How `ranked` treats shadows: leaves them out, puts them last, or keeps them.",
    )
    options: Options = Field([], description="The possible answers, if they are known.")


class AskRequest(Scoped):
    """What to answer."""

    model_config = _example(
        {
            "question": "Where does Ana live?",
            "user_id": "ana",
            "options": ["Porto", "Lisbon"],
            "paths": ["standard", "gcmem"],
        }
    )

    question: Query
    options: Options = []
    k: K = 10
    as_of: Time | None = None
    known_at: Time | None = None
    filters: Filters | None = None
    paths: Annotated[list[AnswerPath], Field(min_length=1, max_length=3)] = ["gcmem"]
    mode: PromptMode = "allow-unclear"


class Document(BaseModel):
    """A document from another retriever. Other fields come back unchanged."""

    model_config = _example(
        {"id": "a", "text": "v2 is deployed", "at": "2026-03-01T09:00:00Z"}, closed=False
    )

    id: Label | None = None
    text: Text
    at: Time | None = Field(None, description="A document without a time is never removed.")


class ResolveRequest(BaseModel):
    """Documents to resolve."""

    model_config = _example(
        {
            "query": "Where does Ana live?",
            "documents": [
                {"id": "a", "text": "I live in Porto.", "at": "2025-01-01T00:00:00Z"},
                {"id": "b", "text": "I moved to Lisbon.", "at": "2026-03-01T00:00:00Z"},
            ],
        }
    )

    documents: Annotated[list[Document], Field(max_length=MAX_DOCUMENTS)]
    query: Annotated[str, StringConstraints(max_length=MAX_QUERY_CHARS)] = ""
    options: Options = []


class ListQuery(Scoped):
    """Which memories to list."""

    model_config = ConfigDict(extra="forbid")

    cursor: str | None = Field(None, pattern=PATTERN, description="`next` of the previous page.")
    after_seq: int = Field(
        0,
        ge=0,
        le=MAX_SEQ,
        description="Lists memories with a higher `seq`. Keys bound to a scope can't use it.",
    )
    limit: int = Field(100, ge=1, le=MAX_PAGE)


class ItemQuery(Scoped):
    """The scope of one memory, or of the memories to erase."""

    model_config = ConfigDict(extra="forbid")


class HistoryQuery(Scoped):
    """Which part of the timeline to show."""

    model_config = ConfigDict(extra="forbid")

    as_of: Time | None = None
    known_at: Time | None = None
    newest_first: bool = True
    limit: int = Field(100, ge=1, le=MAX_PAGE)
    before: str | None = Field(None, pattern=PATTERN, description="`next` of the previous page.")


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
    """The newer memory that is known to contradict this one."""

    witness: str
    score: float | None = Field(description="Null if only the verdict was stored.")
    oracle: str


class TimelineChunk(ChunkOut):
    """One memory on the timeline. It is current if it was judged and nothing shadows it."""

    shadowed_by: ShadowedBy | None
    judged: bool = Field(
        description="Whether it was compared with other memories. If false, nobody knows whether "
        "it is still true: run `gcmem link`, or search for it."
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

    memories: list[TimelineChunk]
    next: str | None = Field(description="Pass it as `before` for the next page.")


class CandidateOut(BaseModel):
    """A memory that was retrieved."""

    memory: ChunkOut
    relevance: float
    origin: Literal["mtm", "stm", "edge"]


class ConflictOut(BaseModel):
    """A verdict that two memories can't both be true now; the ids are theirs."""

    older: str
    newer: str
    score: float
    oracle: str


class SkewOut(BaseModel):
    """An undecided conflict, and by how many seconds its writers' clocks are known to disagree."""

    conflict: ConflictOut
    disagreement_s: float


class ShadowOut(BaseModel):
    """A memory that is no longer true, and the newer one that contradicts it."""

    candidate: CandidateOut
    witness: CandidateOut
    conflict: ConflictOut


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
    kept: list[CandidateOut]
    shadows: list[ShadowOut]
    undecided: list[ConflictOut]
    skewed: list[SkewOut] = Field(
        description="The undecided conflicts whose writers' clocks disagree."
    )
    outranked: list[ConflictOut] = Field(
        description="Conflicts whose newer memory is trusted less; both stay."
    )
    ranked: list[str] = Field(description="Ids, at most k, as `mode` presents them.")
    omitted: int = Field(
        description="How many memories, shadows and conflicts were left out because the reply "
        "reached its size limit; ask for fewer with `k`."
    )
    timings_ms: TimingsOut
    oracle: OracleOut


class AnswerOut(BaseModel):
    """The answer of one path."""

    path: AnswerPath
    text: str
    choice: str | None
    kept: list[str]
    shadows: list[ShadowOut]


class AskReply(BaseModel):
    """The answers, and the candidates that all paths read."""

    answers: list[AnswerOut]
    candidates: list[CandidateOut]
    omitted: int = Field(
        description="How many memories, shadows and conflicts were left out because the reply "
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
