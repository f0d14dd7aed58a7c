"""What retrieval, resolution and answers return."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gcmem.errors import InvalidInputError
from gcmem.types.chunks import Chunk
from gcmem.types.claims import Claim, Conflict, Span, Verdict

Origin = Literal["mtm", "stm", "edge"]
Strategy = Literal["dense", "paper", "stratified"]
Fitness = Literal["optimal", "marginal", "unfit"]
"""How well an oracle did when measured; an unfit oracle may not remove anything."""
JudgeMode = Literal["background", "manual"]
ActOn = Literal["sure", "likely"]
Mode = Literal["drop", "demote", "annotate"]
AnswerPath = Literal["standard", "timestamp", "gcmem"]
PromptMode = Literal["forced-choice", "allow-unclear"]
View = Literal["auto", "current", "past", "changes"]
"""What a question is about: the present, the past or a change; `auto` decides by its words."""
Outcome = Literal["current", "doubtful", "outdated"]
"""Whether a chunk still holds: nothing speaks against it, something might, or something does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A retrieved chunk, its relevance, and what found it.

    `struck` says which parts of the stored text are outdated and were left out of `chunk.text`.
    """

    chunk: Chunk
    relevance: float
    origin: Origin
    struck: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """The candidates that the oracle and every answer path see, most relevant first."""

    query: str
    items: tuple[Candidate, ...]
    options: tuple[str, ...] = ()
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.items, (tuple, list)) or not all(
            isinstance(item, Candidate) for item in self.items
        ):
            raise InvalidInputError("items of a CandidateSet: pass a tuple of Candidate")
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
class Shadow:
    """What a newer candidate contradicts, with the proof: the witness and the verdict.

    `claim` is the sentence that is outdated, None for the whole chunk. If other sentences of the
    chunk still hold, `is_whole` is False: the chunk stays in the result without this sentence.
    """

    candidate: Candidate
    witness: Candidate
    conflict: Conflict
    claim: Claim | None = None
    witness_claim: Claim | None = None
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A candidate that may be outdated, and the candidate that may have ended it. It is kept."""

    candidate: Candidate
    witness: Candidate
    conflict: Verdict
    claim: Claim
    witness_claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """A conflict left undecided because the clocks of its two writers disagree too much.

    `disagreement_s` is the part that the log proves; the clocks may be further apart.
    """

    conflict: Conflict
    disagreement_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The result of temporal dominance: what it kept, what it removed and why.

    `undecided` conflicts have no order in time; `skewed` lists those that the writers' clocks
    cause. In `outranked` conflicts the newer chunk is trusted less than the older one. Both chunks
    of such conflicts are kept, and those of `doubtful` ones. `unjudged` lists the chunks that no
    judge has read yet.
    """

    kept: tuple[Candidate, ...]
    shadows: tuple[Shadow, ...]
    undecided: tuple[Conflict, ...]
    skewed: tuple[Skew, ...] = ()
    outranked: tuple[Conflict, ...] = ()
    doubtful: tuple[Doubt, ...] = ()
    unjudged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A question for a reader, with the chunks in the order in which it reads them.

    `notes` says of each chunk whether it is outdated or may be; "" if nothing speaks against it.
    """

    question: str
    chunks: tuple[Chunk, ...]
    options: tuple[str, ...] = ()
    mode: PromptMode = "allow-unclear"
    as_of: datetime | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A reader's reply: its words, and the option it chose (None: unclear).

    `source` is the id of the chunk that the answer comes from, if the reader knows it.
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
    """The answer of one path; `timings` cover the whole call.

    `source` is the id of the chunk that the answer comes from; language models don't report it.
    `view` is the view of the question; only the path "gcmem" goes by it.
    """

    text: str
    choice: str | None
    path: AnswerPath
    resolution: Resolution
    timings: Timings
    tokens: int = 0
    source: str | None = None
    view: View = "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search: `kept` is still true, `shadows` are contradicted and say by what.

    `doubtful` candidates are kept too, but may be outdated, and `unjudged` ones are still to be
    judged: there was no time for them.
    `undecided` pairs contradict but can't be ordered in time, so both stay; `skewed` lists those
    that disagreeing clocks cause. Iterating yields `ranked`, at most k candidates by mode: only
    kept ones ("drop"), kept before shadowed ("demote"), or both by relevance ("annotate").
    `view` is the one that was used. In the views "past" and "changes" outdated candidates are among
    `kept` too, whatever the mode. `unremoved` lists the shadows that stay in every view, because
    their oracle may not remove them.
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
    doubtful: tuple[Doubt, ...] = ()
    unjudged: tuple[str, ...] = ()
    view: View = "current"
    unremoved: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.ranked)

    def __len__(self) -> int:
        return len(self.ranked)

    def __getitem__(self, number: int) -> Candidate:
        return self.ranked[number]

    def shadow_of(self, chunk_id: str) -> Shadow | None:
        """Returns the shadow of a chunk with its witness, or None if the chunk is not shadowed."""
        return next((s for s in self.shadows if s.candidate.chunk.id == chunk_id), None)

    def outcome(self, chunk_id: str) -> Outcome:
        """Returns whether a candidate is current, doubtful or outdated as a whole."""
        if any(s.is_whole and s.candidate.chunk.id == chunk_id for s in self.shadows):
            return "outdated"
        doubted = any(doubt.candidate.chunk.id == chunk_id for doubt in self.doubtful)
        return "doubtful" if doubted else "current"

    def context(
        self, *, max_tokens: int = 800, count_tokens: Callable[[str], int] | None = None
    ) -> str:
        """Returns the candidates as text for a prompt: a line each, dated, quoted and marked.

        Leaves out the least relevant lines so that the text has at most `max_tokens` tokens. By
        default four characters count as a token; `count_tokens` counts those of your model.
        """
        from gcmem.answer.context import context_of  # answers are built on types

        return context_of(self, max_tokens=max_tokens, count_tokens=count_tokens)
