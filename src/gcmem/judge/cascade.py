"""Asks a cheap classifier first, and a better oracle about the pairs it is unsure of."""

from __future__ import annotations

from dataclasses import replace

from gcmem.errors import InvalidInputError
from gcmem.judge.pairs import possible_pairs
from gcmem.protocols import ConflictOracle, PairClassifier
from gcmem.types import CandidateSet, Chunk, Conflict


class CascadeOracle:
    """Lets `first` decide the pairs it is sure of and asks `second` about the others.

    A score of at least `high` is a conflict; a score of at most `low` is not. `last_asked` counts
    the pairs of the last set that `second` was asked about.
    """

    def __init__(
        self,
        first: PairClassifier,
        second: ConflictOracle,
        *,
        low: float = 0.2,
        high: float = 0.8,
    ) -> None:
        if not 0.0 <= low <= high <= 1.0:
            raise InvalidInputError(f"low={low}, high={high}: pass 0 <= low <= high <= 1")
        self._first = first
        self._second = second
        self._low = low
        self._high = high
        self.id = f"cascade({first.id},{second.id},{low:g}-{high:g})"
        self.language: str | None = getattr(first, "language", None)
        self.last_asked = 0

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts that either found, each pair once, older chunk first."""
        pairs = possible_pairs(candidates)
        texts = [(older.text, newer.text) for older, newer in pairs]
        scores = self._first.score(candidates.query, texts) if pairs else []
        sure: list[Conflict] = []
        unsure: list[tuple[Chunk, Chunk]] = []
        for (older, newer), score in zip(pairs, scores, strict=True):
            if score >= self._high:
                sure.append(self._conflict(older, newer, score))
            elif not score <= self._low:  # NaN is not a verdict: ask the second oracle
                unsure.append((older, newer))
        self.last_asked = len(unsure)
        return (*sure, *self._second_opinion(candidates, unsure))

    def _second_opinion(
        self, candidates: CandidateSet, unsure: list[tuple[Chunk, Chunk]]
    ) -> list[Conflict]:
        if not unsure:
            return []
        ids = {chunk.id for pair in unsure for chunk in pair}
        items = tuple(item for item in candidates if item.chunk.id in ids)
        scores: dict[frozenset[str], float] = {}
        for conflict in self._second.judge(replace(candidates, items=items)):
            pair = frozenset((conflict.older, conflict.newer))
            scores[pair] = max(conflict.score, scores.get(pair, 0.0))
        # The second oracle also sees pairs that the first has decided: ignore its opinion on those.
        return [
            self._conflict(older, newer, scores[pair])
            for older, newer in unsure
            if (pair := frozenset((older.id, newer.id))) in scores
        ]

    def _conflict(self, older: Chunk, newer: Chunk, score: float) -> Conflict:
        return Conflict(older=older.id, newer=newer.id, score=score, oracle=self.id)
