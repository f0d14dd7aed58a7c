"""Claims, and verdicts on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gcmem.types.chunks import Chunk, utc

Span = tuple[int, int]
"""Where a piece of a text starts and ends."""
JudgeKind = Literal["model", "language model", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence or clause of a chunk that says how things are, which a later one can change."""

    chunk: Chunk
    span: Span

    @property
    def id(self) -> str:
        """The chunk's id, and the place in its text."""
        return claim_id(self.chunk.id, self.span)

    @property
    def text(self) -> str:
        """The words of the claim."""
        return self.chunk.text[slice(*self.span)]

    def overlaps(self, other: Claim) -> bool:
        """Returns whether two claims share a part of one chunk's text."""
        return (
            self.chunk.id == other.chunk.id
            and self.span[0] < other.span[1]
            and other.span[0] < self.span[1]
        )


def claim_id(chunk_id: str, span: Span) -> str:
    """Returns the id of a claim: its chunk's id, and its place in the chunk's text."""
    return f"{chunk_id}#{span[0]}-{span[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """An oracle's verdict that two chunks can't both be true now."""

    older: str
    newer: str
    score: float
    oracle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Conflict):
    """How sure a judge is that the claim of one chunk ended the claim of another.

    `older` and `newer` are the chunks' ids, `oracle` names the judge and its version. `question` is
    set if the verdict holds for this question only. A person's score is 1 or 0.
    """

    older_span: Span
    newer_span: Span
    by: JudgeKind = "model"
    question: str = ""
    reason: str = ""
    recorded_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.recorded_at is not None:
            object.__setattr__(self, "recorded_at", utc(self.recorded_at, name="recorded_at"))

    @property
    def pair(self) -> tuple[str, str]:
        """The ids of the two claims, older first."""
        return claim_id(self.older, self.older_span), claim_id(self.newer, self.newer_span)


def without_spans(text: str, spans: tuple[Span, ...]) -> str:
    """Returns a text without some of its pieces, and without the gaps that they leave."""
    kept: list[str] = []
    end = 0
    for first, last in sorted(spans):
        kept.append(text[end:first])
        end = max(end, last)
    kept.append(text[end:])
    return " ".join(piece for part in kept if (piece := part.strip(" \t;,–—-")))
