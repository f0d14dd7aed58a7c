"""Plain retrieval to compare with: BM25 and cosine similarity over texts as they were said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gcmem.protocols import Encoder, Vectors

WORD = re.compile(r"\w+")
K1 = 1.2
B = 0.75

Scores = np.ndarray[Any, np.dtype[np.float64]]


class Yardstick(Protocol):
    """Scores the texts that it was made with."""

    def scores(self, question: str) -> Scores:
        """Returns one score per text; texts that don't match have minus infinity."""


class BM25:
    """BM25 over lowercase words: no stemming, no stop words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._size = len(texts)
        counts = [Counter(words(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
        found: dict[str, tuple[list[int], list[int]]] = {}
        for place, count in enumerate(counts):
            for word, times in count.items():
                places, often = found.setdefault(word, ([], []))
                places.append(place)
                often.append(times)
        self._words: dict[str, tuple[np.ndarray[Any, Any], Scores]] = {}
        for word, (listed, often) in found.items():
            places_, times_ = np.array(listed), np.array(often, dtype=np.float64)
            rarity = np.log(1 + (self._size - len(listed) + 0.5) / (len(listed) + 0.5))
            weights = rarity * times_ * (K1 + 1) / (times_ + norm[places_])
            self._words[word] = places_, weights

    def scores(self, question: str) -> Scores:
        """Returns one score per text; a text without a word of the question has minus infinity."""
        scores = np.zeros(self._size)
        for word in words(question):
            if word in self._words:
                places, weights = self._words[word]
                scores[places] += weights
        return np.where(scores > 0, scores, -np.inf)


class Cosine:
    """Cosine similarity to the question; the vectors have unit length."""

    def __init__(self, vectors: Vectors, encoder: Encoder) -> None:
        self._vectors = vectors
        self._encoder = encoder

    def scores(self, question: str) -> Scores:
        """Returns one score per vector."""
        return np.asarray(self._vectors @ self._encoder.encode([question])[0], dtype=np.float64)


def words(text: str) -> list[str]:
    """Returns the words of a text in lower case."""
    return WORD.findall(text.lower())


def best(scores: Scores, turn_ids: Sequence[str], k: int) -> list[str]:
    """Returns the k best turns; a turn counts once, with the best of its texts."""
    found: dict[str, None] = {}
    for place in np.argsort(-scores, kind="stable"):
        if len(found) == k or scores[place] == -np.inf:
            break
        found[turn_ids[place]] = None
    return list(found)
