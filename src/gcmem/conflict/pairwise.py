"""Makes a conflict oracle of anything that can score a pair."""

from __future__ import annotations

from itertools import combinations

from gcmem.errors import InvalidInputError
from gcmem.protocols import PairClassifier
from gcmem.types import CandidateSet, Chunk, Conflict


class PairwiseOracle:
    """Scores every pair that could matter, in one batch, and reports those at the threshold.

    Pairs of two users, and pairs with the same text, can't conflict and are not scored.
    """

    def __init__(self, classifier: PairClassifier, *, threshold: float = 0.5) -> None:
        if not 0.0 <= threshold <= 1.0:
            raise InvalidInputError(f"threshold={threshold}: pass a value from 0 to 1")
        self._classifier = classifier
        self._threshold = threshold
        self.id = classifier.id

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the pairs whose score reaches the threshold."""
        pairs = [
            _in_order(a.chunk, b.chunk)
            for a, b in combinations(candidates, 2)
            if a.chunk.scope.user_id == b.chunk.scope.user_id and a.chunk.text != b.chunk.text
        ]
        scores = self._classifier.score(
            candidates.query, [(older.text, newer.text) for older, newer in pairs]
        )
        return tuple(
            Conflict(older=older.id, newer=newer.id, score=score, oracle=self.id)
            for (older, newer), score in zip(pairs, scores, strict=True)
            if score >= self._threshold
        )


def _in_order(a: Chunk, b: Chunk) -> tuple[Chunk, Chunk]:
    """Older first; a pair that can't be ordered gets a fixed order, so that verdicts repeat."""
    a_is_older = a.precedes(b)
    if a_is_older is None:
        a_is_older = a.id < b.id
    return (a, b) if a_is_older else (b, a)
