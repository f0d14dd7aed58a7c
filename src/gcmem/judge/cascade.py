"""A cheap classifier first, and a better oracle for what it is unsure of."""

from __future__ import annotations

from dataclasses import replace

from gcmem.errors import InvalidInputError
from gcmem.judge.pairs import possible_pairs
from gcmem.protocols import ConflictOracle, PairClassifier
from gcmem.types import CandidateSet, Chunk, Conflict


class CascadeOracle:
    """Lets `first` decide the pairs that it is sure of and asks `second` about the others.

    A score of `high` or more is a conflict and one of `low` or less is none; `last_asked` is how
    many pairs of the last set lay between.
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
        self.last_asked = 0

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts of both, each pair once, older first."""
        pairs = possible_pairs(candidates)
        texts = [(older.text, newer.text) for older, newer in pairs]
        scores = self._first.score(candidates.query, texts) if pairs else []
        sure: list[Conflict] = []
        unsure: list[tuple[Chunk, Chunk]] = []
        for (older, newer), score in zip(pairs, scores, strict=True):
            if score >= self._high:
                sure.append(self._conflict(older, newer, score))
            elif not score <= self._low:  # a score that is no number is no verdict either
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
        # The second oracle also sees pairs that are settled already: those stay settled.
        return [
            self._conflict(older, newer, scores[pair])
            for older, newer in unsure
            if (pair := frozenset((older.id, newer.id))) in scores
        ]

    def _conflict(self, older: Chunk, newer: Chunk, score: float) -> Conflict:
        return Conflict(older=older.id, newer=newer.id, score=score, oracle=self.id)
