"""Joins the hits by meaning and by words into one relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEPTH = 100
"""How many hits of each kind are compared."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """Relevance from 0 to 1: the weighted mean of a chunk's place between the least and the most
    similar hit, and of its share of the best word score."""

    least: float
    most: float
    words: Mapping[str, float]
    lexical_weight: float

    @classmethod
    def of(
        cls,
        similar: Sequence[float],
        by_words: Sequence[tuple[str, float]],
        *,
        lexical_weight: float,
    ) -> Fusion:
        """Takes the cosines of the most similar chunks, and the best chunks by words."""
        best = max((score for _, score in by_words), default=0.0)
        return cls(
            least=min(similar, default=0.0),
            most=max(similar, default=0.0),
            words={chunk_id: score / best for chunk_id, score in by_words if best > 0},
            lexical_weight=lexical_weight,
        )

    def relevance(self, chunk_id: str, cosine: float) -> float:
        """Returns the relevance of a chunk; one that is not among the hits by words has none."""
        span = self.most - self.least
        dense = (cosine - self.least) / span if span > 0 else float(cosine >= self.most)
        dense = min(1.0, max(0.0, dense))
        words = self.words.get(chunk_id, 0.0)
        return (1 - self.lexical_weight) * dense + self.lexical_weight * words
