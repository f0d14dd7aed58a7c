"""The shapes of requests, as OpenAPI shows them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from gcmem.serve.http.cursors import PATTERN
from gcmem.serve.http.word import Word
from gcmem.types import MAX_SCOPE_ID_CHARS, AnswerPath, Mode, PromptMode, Scope, View

MAX_MESSAGES = 256
MAX_DOCUMENTS = 64
MAX_OPTIONS = 32
MAX_K = 100
MAX_PAGE = 1000
MAX_QUERY_CHARS = 10_000
MAX_REASON_CHARS = 1000
MAX_ID_CHARS = 100
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
Reason = Annotated[str, StringConstraints(max_length=MAX_REASON_CHARS)]
MemoryId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS)]
Options = Annotated[list[Query], Field(max_length=MAX_OPTIONS)]
Filters = dict[str, Any]
AskedView = Annotated[
    View,
    Field(
        description="What the question is about. `past` and `changes` show what is outdated too, "
        "`changes` the oldest first; `auto` decides by the words of the question."
    ),
]


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
    view: AskedView = "auto"


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
    view: AskedView = "auto"


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


class PinRequest(BaseModel):
    """Whose word it is that a memory must stay, or need not."""

    model_config = _example({"by": "Ana"})

    by: Label | None = Field(None, description="Default: the name of the key, or user.")


class VerdictRequest(Scoped):
    """A person's word about two memories."""

    model_config = _example(
        {
            "older": "0b6d7e0a-6f0e-4b52-8f0c-3a9d5b1f7c21",
            "newer": "5f0c2f0e-2b0f-4a39-9d3c-0a4f3c1a7b11",
            "word": "confirm",
            "reason": "Ana has moved.",
        }
    )

    older: MemoryId
    newer: MemoryId
    word: Word = Field(
        description="confirm: the newer memory ended the older one. reject: it did not. undo: "
        "takes back what a person said about the two, so that models decide again."
    )
    by: Label | None = Field(
        None, description="Whose word it is; default: the name of the key, or user."
    )
    reason: Reason = ""


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


class CurrentQuery(Scoped):
    """Which claims to list."""

    model_config = ConfigDict(extra="forbid")

    as_of: Time | None = Field(None, description="What was true then.")
    cursor: str | None = Field(None, pattern=PATTERN, description="`next` of the previous page.")
    limit: int = Field(100, ge=1, le=MAX_PAGE)
