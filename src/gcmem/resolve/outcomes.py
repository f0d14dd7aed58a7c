"""Turns verdicts into outcomes: which candidates are current, doubtful, outdated. No model here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from gcmem.languages import looks_english
from gcmem.resolve.temporal import temporal_dominance
from gcmem.sentences import clause_spans
from gcmem.types import (
    Candidate,
    CandidateSet,
    Claim,
    Conflict,
    Doubt,
    Resolution,
    Shadow,
    Span,
    Verdict,
    claim_id,
    without_spans,
)
from gcmem.words import CJK

LEAST_WORDS_LEFT = 3
"""What is left of a chunk counts if it has a sentence of this many words."""
WORD = re.compile(rf"[{CJK}]|[^\s{CJK}]+")
"""A word; where there are no spaces between words, a character."""
BEARS = 0.75
"""What is left bears on the question if it is at least this share as similar as what is struck."""

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns how similar each text is to a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of a resolution besides time."""

    max_skew: timedelta | None = None
    """Maximum disagreement of two writers' clocks, or None; beyond it a pair is undecided."""
    respect_trust: bool = False
    """Whether a chunk may shadow only chunks with the same trust or less."""
    removes: bool = True
    """Whether shadows are left out of `kept`. Otherwise they are only reported."""
    english_only: bool = False
    """Whether the judge reads English alone: in other languages it only raises doubts."""


def outcomes(
    candidates: CandidateSet,
    verdicts: Iterable[Verdict],
    *,
    sure: float,
    likely: float,
    policy: Policy,
    pinned: frozenset[str] = frozenset(),
    similar: Similarity | None = None,
) -> Resolution:
    """Strikes outdated sentences, and leaves chunks out of which nothing is left.

    From a score of `sure` on, a verdict ends the older claim; from `likely` on, it makes it
    doubtful. Pinned chunks are doubtful at most. What is left of a chunk must bear on the question,
    by `similar`, to stay.
    """
    by_id = {item.chunk.id: item for item in candidates}
    claims = _Claims(by_id)
    acting: list[Verdict] = []
    doubted: list[Verdict] = []
    for verdict in sorted(verdicts, key=_fixed_order):
        if verdict.score < likely or not _is_about(verdict, by_id):
            continue
        claims.add(verdict)
        may_act = verdict.score >= sure and _may_act(claims, verdict, policy, pinned)
        (acting if may_act else doubted).append(verdict)
    found = _ended(claims, acting, policy)
    struck: dict[str, list[Shadow]] = {}
    for shadow in found.shadows:
        struck.setdefault(claims.chunk_of[shadow.candidate.chunk.id], []).append(shadow)
    kept: list[Candidate] = []
    shadows: list[Shadow] = []
    for item in candidates:
        gone = sorted(struck.get(item.chunk.id, []), key=claims.place)
        rest = item if not gone else _rest(item, claims, gone, candidates.query, similar)
        if rest is not None:
            kept.append(rest if policy.removes else item)
        shadows += [claims.shadow(shadow, is_whole=rest is None) for shadow in gone]
    undecided = [claims.of_chunks(c) for c in found.undecided]
    outranked = [claims.of_chunks(c) for c in found.outranked]
    # One doubt per pair, and none about what is gone anyway.
    doubts = {
        verdict.pair: claims.doubt(verdict)
        for verdict in (*doubted, *undecided, *outranked)
        if not _is_gone(verdict, shadows)
    }
    return Resolution(
        kept=tuple(kept) if policy.removes else candidates.items,
        shadows=tuple(shadows),
        undecided=tuple(undecided),
        skewed=tuple(replace(s, conflict=claims.of_chunks(s.conflict)) for s in found.skewed),
        outranked=tuple(outranked),
        doubtful=tuple(doubts.values()),
    )


def _fixed_order(verdict: Verdict) -> tuple[Any, ...]:
    """Sort key. Of several verdicts on the same claims a person's comes last, then the surest."""
    return verdict.pair, verdict.by == "person", verdict.score, verdict.oracle, verdict.reason


def _is_about(verdict: Verdict, by_id: Mapping[str, Candidate]) -> bool:
    older, newer = by_id.get(verdict.older), by_id.get(verdict.newer)
    return (
        older is not None
        and newer is not None
        and older.chunk.scope.user_id == newer.chunk.scope.user_id
        and not older.struck  # resolved before: its text has other places now
        and older.chunk.precedes(newer.chunk) is not False  # people can mix them up
    )


def _may_act(claims: _Claims, verdict: Verdict, policy: Policy, pinned: frozenset[str]) -> bool:
    if verdict.older in pinned:
        return False
    if verdict.by == "person" or not policy.english_only:
        return True
    return all(looks_english(claims.items[claim].chunk.text) for claim in verdict.pair)


def _ended(claims: _Claims, verdicts: Sequence[Verdict], policy: Policy) -> Resolution:
    """Returns which claims are ended. A person may know better than clocks and trust levels."""
    items = CandidateSet(query="", items=tuple(claims.items.values()))
    by_models = temporal_dominance(
        items,
        [_conflict(verdict) for verdict in verdicts if verdict.by != "person"],
        max_skew=policy.max_skew,
        respect_trust=policy.respect_trust,
    )
    by_people = temporal_dominance(
        items, [_conflict(verdict) for verdict in verdicts if verdict.by == "person"]
    )
    shadows = {s.candidate.chunk.id: s for s in (*by_models.shadows, *by_people.shadows)}
    return replace(
        by_models,
        shadows=tuple(shadows.values()),
        undecided=(*by_models.undecided, *by_people.undecided),
    )


def _conflict(verdict: Verdict) -> Conflict:
    older, newer = verdict.pair
    return Conflict(older=older, newer=newer, score=verdict.score, oracle=verdict.oracle)


def _is_gone(verdict: Verdict, shadows: Sequence[Shadow]) -> bool:
    """Returns whether the older claim of a verdict is struck, or all of its chunk is."""
    first, last = verdict.older_span
    return any(
        shadow.is_whole
        or (
            shadow.claim is not None
            and shadow.claim.span[0] < last
            and first < shadow.claim.span[1]
        )
        for shadow in shadows
        if shadow.candidate.chunk.id == verdict.older
    )


def _rest(
    item: Candidate,
    claims: _Claims,
    gone: Sequence[Shadow],
    question: str,
    similar: Similarity | None,
) -> Candidate | None:
    """Returns the candidate without its outdated sentences, or None if nothing of it matters."""
    text = item.chunk.text
    spans = tuple(sorted(claims.span_of[shadow.candidate.chunk.id] for shadow in gone))
    left = without_spans(text, spans)
    sentences = [
        left[start:end]
        for start, end in clause_spans(left)
        if len(WORD.findall(left[start:end])) >= LEAST_WORDS_LEFT
    ]
    if not sentences:
        return None
    if similar is not None and question:
        ended = [text[slice(*span)] for span in spans]
        scores = similar(question, [*ended, *sentences])
        most = max(scores[: len(ended)])
        if max(scores[len(ended) :]) < min(most, BEARS * most):  # most may be below 0
            return None
    return replace(item, chunk=replace(item.chunk, text=left), struck=spans)


class _Claims:
    """The claims that verdicts name, as candidates of their own, so that Φ_T can order them."""

    def __init__(self, by_id: Mapping[str, Candidate]) -> None:
        self._by_id = by_id
        self.items: dict[str, Candidate] = {}
        self.chunk_of: dict[str, str] = {}
        self.span_of: dict[str, Span] = {}
        self._verdicts: dict[tuple[str, str], Verdict] = {}

    def add(self, verdict: Verdict) -> None:
        """Adds the two claims of a verdict."""
        older, newer = verdict.pair
        for chunk_id, span in (
            (verdict.older, verdict.older_span),
            (verdict.newer, verdict.newer_span),
        ):
            self._add(chunk_id, span)
        self._verdicts[older, newer] = self._verdicts[newer, older] = verdict

    def _add(self, chunk_id: str, span: Span) -> None:
        name = claim_id(chunk_id, span)
        if name not in self.items:
            item = self._by_id[chunk_id]
            text = item.chunk.text[slice(*span)]
            self.items[name] = replace(item, chunk=replace(item.chunk, id=name, text=text))
            self.chunk_of[name], self.span_of[name] = chunk_id, span

    def place(self, shadow: Shadow) -> Span:
        """Returns where the claim of a shadow is in its chunk."""
        return self.span_of[shadow.candidate.chunk.id]

    def claim(self, name: str) -> Claim:
        """Returns a claim by its id."""
        return Claim(chunk=self._by_id[self.chunk_of[name]].chunk, span=self.span_of[name])

    def of_chunks(self, conflict: Conflict) -> Verdict:
        """Returns the verdict behind a conflict between claims."""
        return self._verdicts[conflict.older, conflict.newer]

    def shadow(self, shadow: Shadow, *, is_whole: bool) -> Shadow:
        """Returns a shadow of a claim as one of its chunk."""
        older, newer = shadow.candidate.chunk.id, shadow.witness.chunk.id
        return Shadow(
            candidate=self._by_id[self.chunk_of[older]],
            witness=self._by_id[self.chunk_of[newer]],
            conflict=self._verdicts[older, newer],
            claim=self.claim(older),
            witness_claim=self.claim(newer),
            is_whole=is_whole,
        )

    def doubt(self, verdict: Verdict) -> Doubt:
        """Returns a verdict as a doubt about the older of its two chunks."""
        return Doubt(
            candidate=self._by_id[verdict.older],
            witness=self._by_id[verdict.newer],
            conflict=verdict,
            claim=self.claim(verdict.pair[0]),
            witness_claim=self.claim(verdict.pair[1]),
        )
