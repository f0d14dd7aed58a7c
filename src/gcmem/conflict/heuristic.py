"""A first local classifier: similarity and a handful of cues. It sees explicit updates only."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from gcmem.protocols import Encoder

WORD = re.compile(r"[^\W_]+(?:[.:\-][^\W_]+)*")
NUMBER = re.compile(r"\d")
NEGATION = re.compile(
    r"\b(?:no|not|never|without|none|no longer|stopped|quit|gave up|cancelled|closed)\b|n't\b", re.I
)
UPDATE = re.compile(
    r"\b(?:no longer|not? .{0,20}any ?more|instead|switched|moved|changed|now|replaced|actually|"
    r"correction|these days|from now on|stopped|quit|gave up|left|migrated|renamed|updated)\b",
    re.I,
)
UNREAL = re.compile(r"\?\s*$|\b(?:if|would|might|maybe|wish|hypothetically|planning to)\b", re.I)

# Hand-set, not trained: a pair on one topic needs at least one cue to count.
BIAS, SIMILARITY, CUE_UPDATE, CUE_NEGATION, CUE_VALUE, CUE_NUMBER = -7.5, 8.0, 2.2, 2.0, 2.6, 2.0


class HeuristicClassifier:
    """Calls a pair a conflict when it is on one topic and differs in a value or a negation."""

    id = "heuristic@1"

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns one score a pair, from 0 to 1."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        vectors = dict(zip(texts, self._encoder.encode(texts), strict=True))
        return [
            _score(older, newer, similarity=float(vectors[older] @ vectors[newer]))
            for older, newer in pairs
        ]


def _score(older: str, newer: str, *, similarity: float) -> float:
    if UNREAL.search(newer) or UNREAL.search(older):
        return 0.0
    old_words, new_words = _words(older), _words(newer)
    shared = len(old_words & new_words) / max(1, min(len(old_words), len(new_words)))
    same_frame = shared >= 0.5 and bool(old_words - new_words) and bool(new_words - old_words)
    old_numbers = {word for word in old_words if NUMBER.search(word)}
    new_numbers = {word for word in new_words if NUMBER.search(word)}
    cues = (
        CUE_UPDATE * bool(UPDATE.search(newer))
        + CUE_NEGATION * (bool(NEGATION.search(older)) != bool(NEGATION.search(newer)))
        + CUE_VALUE * same_frame
        + CUE_NUMBER * bool(old_numbers and new_numbers and old_numbers != new_numbers)
    )
    if not cues:
        return 0.0
    return 1 / (1 + math.exp(-(BIAS + SIMILARITY * similarity + cues)))


def _words(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text) if len(word) > 2 or word.isdigit()}
