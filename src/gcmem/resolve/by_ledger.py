"""Resolves by the verdicts in the ledger; judges only what nobody has judged yet."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from gcmem import deadline
from gcmem.errors import DeadlineExceededError, ModelError, StoreUnavailableError
from gcmem.protocols import ChunkLog, Ledger
from gcmem.resolve.outcomes import Policy, Similarity, outcomes
from gcmem.resolve.persons import last_words
from gcmem.stopwatch import Stopwatch
from gcmem.types import (
    Candidate,
    CandidateSet,
    Chunk,
    ChunkFilter,
    Claim,
    Resolution,
    Verdict,
)

logger = logging.getLogger(__name__)

Pair = tuple[str, str]

BEAR_ON_QUESTION = 5
"""A doubt bears on the question if both of its chunks are among this many most relevant ones."""


class JudgesNow(Protocol):
    """What judges the chunks that wait; `gcmem.judge.ahead.Judging` implements it."""

    @property
    def id(self) -> str:
        """Names the judge and the detector in the ledger."""

    def ask(self, older: Claim, newer: Claim, question: str) -> Verdict:
        """Judges two claims for one question; the verdict is not kept yet."""

    def judge_now(self, chunks: Sequence[Chunk], *, budget_s: float) -> list[str]:
        """Judges those of the chunks that wait, as far as the time allows; returns the rest."""


class LedgerResolver:
    """Decides by kept verdicts which candidates still hold. A person's word outranks every model's.

    Within the time budget, chunks that wait are judged first; then doubtful pairs are read once
    more with the question, and these verdicts are kept too.
    """

    def __init__(
        self,
        judging: JudgesNow,
        ledger: Ledger,
        *,
        policy: Policy,
        sure: float,
        likely: float,
        budget_s: float,
        similar: Similarity | None = None,
    ) -> None:
        self.policy = policy
        self._judging = judging
        self._ledger = ledger
        self._sure = sure
        self._likely = likely
        self._budget_s = budget_s
        self._similar = similar

    def resolve(self, candidates: CandidateSet, *, watch: Stopwatch | None = None) -> Resolution:
        """Splits the candidates into current, doubtful and outdated ones."""
        watch = watch or Stopwatch()
        ends_at = time.monotonic() + self._budget_s
        chunks = {item.chunk.id: item.chunk for item in candidates if item.chunk.seq is not None}
        with watch.timing("conflict_ms"):
            unjudged = self._judging.judge_now(list(chunks.values()), budget_s=self._budget_s)
            verdicts = self.known(chunks, question=candidates.query, unjudged=frozenset(unjudged))
            verdicts = self._sharpened(verdicts, chunks, candidates, ends_at=ends_at)
            pinned = frozenset(self._ledger.pins(list(chunks)))
        with watch.timing("dominance_ms"):
            found = outcomes(
                candidates,
                verdicts,
                sure=self._sure,
                likely=self._likely,
                policy=self.policy,
                pinned=pinned,
                similar=self._similar,
            )
        return replace(found, unjudged=tuple(unjudged))

    def overview(self, chunks: Sequence[Chunk], *, log: ChunkLog, where: ChunkFilter) -> Resolution:
        """Returns the outcomes of chunks without a question; judges nothing."""
        mine = {chunk.id: chunk for chunk in chunks}
        ends = {verdict.newer for verdict in self._ledger.verdicts(list(mine))} - mine.keys()
        others = {i: chunk for i, chunk in log.get(sorted(ends)).items() if where.admits(chunk)}
        everything = mine | others
        judged = self._ledger.judged(self._judging.id, [c.seq or 0 for c in everything.values()])
        unjudged = [i for i, chunk in everything.items() if chunk.seq not in judged]
        items = tuple(
            Candidate(chunk=chunk, relevance=0.0, origin="edge" if i in others else "mtm")
            for i, chunk in everything.items()
        )
        found = outcomes(
            CandidateSet(query="", items=items),
            self.known(everything, unjudged=frozenset(unjudged)),
            sure=self._sure,
            likely=self._likely,
            policy=self.policy,
            pinned=frozenset(self._ledger.pins(list(mine))),
        )
        return replace(
            found,
            kept=tuple(item for item in found.kept if item.chunk.id in mine),
            shadows=tuple(s for s in found.shadows if s.candidate.chunk.id in mine),
            doubtful=tuple(d for d in found.doubtful if d.candidate.chunk.id in mine),
            unjudged=tuple(i for i in unjudged if i in mine),
        )

    def known(
        self,
        chunks: Mapping[str, Chunk],
        *,
        question: str = "",
        unjudged: frozenset[str] = frozenset(),
    ) -> list[Verdict]:
        """Returns the verdicts that count between these chunks, one per pair of claims.

        Each chunk was compared with those stored before it. While the present judge has not read a
        chunk, the last judge that has read it counts for these pairs.
        """
        judges = self._last_judges(chunks, unjudged)
        # A question's own verdicts come with those that hold for every question.
        found = self._ledger.verdicts(list(chunks), questions=list(dict.fromkeys(("", question))))
        said = last_words(found, chunks)
        by_model: dict[Pair, Verdict] = {}
        for verdict in sorted(found, key=lambda v: bool(v.question)):
            if verdict.by == "person" or verdict.newer not in chunks:
                continue
            ends = (verdict.older, verdict.newer)
            later = max(ends, key=lambda i: chunks[i].seq or 0)
            if verdict.oracle in (self._judging.id, judges.get(later)):
                by_model[verdict.pair] = verdict
        # Who rejects means all of both messages; who confirms, the claims that were shown.
        rejected = {ends for ends, verdict in said.items() if verdict.score <= 0}
        confirmed = {verdict.pair: verdict for verdict in said.values()}
        return [
            verdict
            for verdict in (by_model | confirmed).values()
            if (verdict.older, verdict.newer) not in rejected
        ]

    def _last_judges(self, chunks: Mapping[str, Chunk], unjudged: frozenset[str]) -> dict[str, str]:
        """Returns by chunk which judge has read it last, for those that wait."""
        waiting = {chunks[chunk_id].seq or 0: chunk_id for chunk_id in unjudged}
        found: dict[str, str] = {}
        for judge in self._ledger.judges() if waiting else ():
            for seq in self._ledger.judged(judge, list(waiting)):
                found[waiting.pop(seq)] = judge
        return found

    def _sharpened(
        self,
        verdicts: Sequence[Verdict],
        chunks: dict[str, Chunk],
        candidates: CandidateSet,
        *,
        ends_at: float,
    ) -> list[Verdict]:
        """Reads doubtful pairs that bear on the question once more with it, while there is time."""
        question = candidates.query
        place = {item.chunk.id: n for n, item in enumerate(candidates.items[:BEAR_ON_QUESTION])}
        doubtful = [
            verdict
            for verdict in verdicts
            if question
            and verdict.by == "model"
            and not verdict.question
            and self._likely <= verdict.score < self._sure
            and verdict.older in place
            and verdict.newer in place
        ]
        doubtful.sort(key=lambda verdict: (place[verdict.older], -verdict.score))
        asked: dict[Pair, Verdict] = {}
        with deadline.budget(max(0.0, ends_at - time.monotonic())) as left:
            for verdict in doubtful:
                try:
                    deadline.check()
                    older = Claim(chunk=chunks[verdict.older], span=verdict.older_span)
                    newer = Claim(chunk=chunks[verdict.newer], span=verdict.newer_span)
                    asked[verdict.pair] = self._judging.ask(older, newer, question)
                except DeadlineExceededError:
                    if not left.is_spent():
                        raise
                    break
                except ModelError as error:
                    logger.warning("a search could not judge what is doubtful: %s", error)
                    break
        with contextlib.suppress(StoreUnavailableError):  # a read-only store is searched too
            self._ledger.record(list(asked.values()))
        return [asked.get(verdict.pair, verdict) for verdict in verdicts]
