"""Finds conflicts by inferring which answer option held at each time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gcmem.judge.local.timeline import Matrix, posterior
from gcmem.judge.pairs import ASSISTANT, ROLES, by_time, can_conflict
from gcmem.judge.pairwise import PairwiseOracle
from gcmem.judge.recipe import ChainSettings, describe, oracle_id, shipped_recipe
from gcmem.protocols import ConflictOracle, ScoreCache, ScoreKey, StanceClassifier
from gcmem.types import CandidateSet, Chunk, Conflict


class JointOracle:
    """Adds to the conflicts of `pairwise` those inferred from the answer options.

    "Had the ribeye again." contradicts no sentence, but implies that somebody eats meat. The oracle
    reads each chunk's stance on the options, combines the stances over time, and reports two
    chunks whose states differ. Without options, `pairwise` decides alone.
    """

    def __init__(
        self,
        stances: StanceClassifier,
        pairwise: ConflictOracle,
        *,
        settings: ChainSettings | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        """`settings` defaults to those of the shipped model."""
        self._stances = stances
        self._pairwise = pairwise
        self._settings = settings or shipped_recipe().chain
        self._cache = cache
        self.language: str | None = getattr(pairwise, "language", None)
        chain = describe(self._settings)
        if isinstance(pairwise, PairwiseOracle) and pairwise.classifier.id == stances.id:
            self.id = oracle_id(stances, {**pairwise.parts, "chain": chain})
        else:
            self.id = f"{pairwise.id}+{stances.id}[chain={chain}]"

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts that either found, each pair once with its higher score."""
        found = {
            (conflict.older, conflict.newer): replace(conflict, oracle=self.id)
            for conflict in self._pairwise.judge(candidates)
        }
        if len(candidates.options) > 1:
            for conflict in self._by_state(candidates):
                pair = (conflict.older, conflict.newer)
                if pair not in found or found[pair].score < conflict.score:
                    found[pair] = conflict
        return tuple(found.values())

    def _by_state(self, candidates: CandidateSet) -> list[Conflict]:
        groups: dict[str | None, list[Chunk]] = defaultdict(list)
        for chunk in relevant_chunks(candidates):
            groups[chunk.scope.user_id].append(chunk)
        found: list[Conflict] = []
        for chunks in groups.values():
            chunks.sort(key=by_time)
            found += self._timeline(candidates.query, candidates.options, chunks)
        return found

    def _timeline(
        self, question: str, options: Sequence[str], chunks: list[Chunk]
    ) -> list[Conflict]:
        stances = self._read_stances(question, options, chunks)
        on_topic = 1 - stances[:, -1]
        states = posterior(
            stances[:, :-1] / np.maximum(on_topic[:, None], 1e-9),
            on_topic,
            switch=self._settings.switch,
            doubt=self._settings.doubt,
        )
        close = [n for n in range(len(chunks)) if on_topic[n] >= self._settings.on_topic]
        return [
            Conflict(older=chunks[a].id, newer=chunks[b].id, score=score, oracle=self.id)
            for number, a in enumerate(close)
            for b in close[number + 1 :]
            if chunks[a].precedes(chunks[b]) and can_conflict(chunks[a], chunks[b])
            if (score := float(on_topic[a] * on_topic[b] * (1 - states[a] @ states[b])))
            >= self._settings.threshold
        ]

    def _read_stances(self, question: str, options: Sequence[str], chunks: list[Chunk]) -> Matrix:
        """Returns the stances, one row per chunk, from the cache where possible."""
        asked = "\n".join((question, *options))
        key = ScoreKey(scorer=self._stances.id, question=asked, kind="stance")
        pairs = [(chunk.id, str(n)) for chunk in chunks for n in range(len(options) + 1)]
        known = {} if self._cache is None else self._cache.get(key, pairs)
        missing = [c for c in chunks if (c.id, "0") not in known]
        if missing:
            read = self._stances.stances(question, options, [c.text for c in missing])
            fresh = {
                (chunk.id, str(n)): score
                for chunk, row in zip(missing, read, strict=True)
                for n, score in enumerate(row)
            }
            known = known | fresh
            if self._cache is not None:
                self._cache.put(key, fresh)
        return np.array([known[pair] for pair in pairs]).reshape(len(chunks), -1)


def relevant_chunks(candidates: CandidateSet) -> list[Chunk]:
    """Returns the dated chunks; if the question names speakers, without those of other people.

    An assistant's chunks are used only if nobody else speaks.
    """
    chunks = [item.chunk for item in candidates if item.chunk.at is not None]
    heard = [chunk for chunk in chunks if chunk.speaker != ASSISTANT]
    chunks = heard or chunks
    words = set(re.findall(r"\w+", candidates.query.casefold()))
    people = {c.speaker for c in chunks} - ROLES
    named = {p for p in people if words.issuperset(re.findall(r"\w+", p.casefold()))}
    return [c for c in chunks if not named or c.speaker in named or c.speaker in ROLES]
