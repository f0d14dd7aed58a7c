"""The baselines that the paper compares Φ_T with.

They share its interface, but ignore conflicts and remove nothing: they only rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from gcmem.errors import InvalidInputError
from gcmem.types import Candidate, CandidateSet, Chunk, Conflict, Resolution

OLDEST = datetime.min.replace(tzinfo=UTC)


class Ranker(Protocol):
    """The interface that every baseline has."""

    def __call__(self, candidates: CandidateSet, conflicts: Iterable[Conflict]) -> Resolution:
        """Returns the chunks to keep, in the order in which a reader should see them."""


def standard(candidates: CandidateSet, conflicts: Iterable[Conflict] = ()) -> Resolution:
    """Plain RAG: keeps every chunk, most relevant first."""
    return Resolution(kept=candidates.items, shadows=(), undecided=())


def plain_set(candidates: CandidateSet, *, k: int, strategy: str) -> CandidateSet:
    """Returns what a search without gcmem finds: the k most similar chunks.

    `stratified` adds chunks that only gcmem can use. Newest first, they would push out the
    chunks that answer the question, and the baseline would look worse than it is.
    """
    if strategy != "stratified":
        return candidates
    return replace(candidates, items=candidates.items[:k])


def timestamp_rerank(candidates: CandidateSet, conflicts: Iterable[Conflict] = ()) -> Resolution:
    """Timestamp re-ranking: keeps every chunk, newest first."""
    return _ranked(candidates, lambda item: _by_time(item.chunk))


def time_decay(*, half_life: timedelta) -> Ranker:
    """Relevance halves with every `half_life` of age, counted from `as_of` or the newest chunk."""
    if half_life <= timedelta(0):
        raise InvalidInputError(f"half_life={half_life}: pass a positive duration")

    def resolve(candidates: CandidateSet, conflicts: Iterable[Conflict] = ()) -> Resolution:
        now = _now(candidates)
        return _ranked(
            candidates,
            lambda item: (max(item.relevance, 0.0) * 0.5 ** (_age(item.chunk, now) / half_life),),
        )

    return resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiFactor:
    """The weights of α·recency + β·relevance + γ·usage + δ·stability."""

    recency: float = 0.25
    relevance: float = 0.25
    usage: float = 0.25
    stability: float = 0.25
    half_life: timedelta = timedelta(days=30)


def multi_factor(weights: MultiFactor, *, usage: Mapping[str, int] | None = None) -> Ranker:
    """Ranks by a weighted sum; usage (past retrievals by id) and stability favour old chunks."""
    counts = usage or {}

    def resolve(candidates: CandidateSet, conflicts: Iterable[Conflict] = ()) -> Resolution:
        now = _now(candidates)
        oldest = max((_age(item.chunk, now) for item in candidates), default=timedelta(0))
        most_used = max((counts.get(item.chunk.id, 0) for item in candidates), default=0)

        def score(item: Candidate) -> tuple[float]:
            age = _age(item.chunk, now)
            stability = age / oldest if oldest else 0.0
            used = counts.get(item.chunk.id, 0) / most_used if most_used else 0.0
            return (
                weights.recency * 0.5 ** (age / weights.half_life)
                + weights.relevance * item.relevance
                + weights.usage * used
                + weights.stability * stability,
            )

        return _ranked(candidates, score)

    return resolve


def _ranked(candidates: CandidateSet, key: Callable[[Candidate], tuple[object, ...]]) -> Resolution:
    # The newer chunk wins a tie, so the order of the input does not matter.
    kept = sorted(candidates, key=lambda item: (key(item), _by_time(item.chunk)), reverse=True)
    return Resolution(kept=tuple(kept), shadows=(), undecided=())


def _by_time(chunk: Chunk) -> tuple[datetime, int, str]:
    return chunk.at or OLDEST, chunk.seq or 0, chunk.id


def _now(candidates: CandidateSet) -> datetime:
    times = [item.chunk.at for item in candidates if item.chunk.at is not None]
    return candidates.as_of or max(times, default=OLDEST)


def _age(chunk: Chunk, now: datetime) -> timedelta:
    """Returns the age of a chunk; 0 if it has no time."""
    return timedelta(0) if chunk.at is None else max(now - chunk.at, timedelta(0))
