"""Scores the sentences of a message, since a conflict must concern what was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gcmem.judge.recipe import FocusSettings, describe, shipped_recipe
from gcmem.protocols import Encoder
from gcmem.sentences import sentences_of

Score = Callable[[str, Sequence[tuple[str, str]]], list[float]]


class Focus:
    """Takes a second look, sentence by sentence, at an older text that would be removed.

    "I work at Google. My dog is Rex." is contradicted by a new job, but still gives the dog's
    name. If the conflict is in another sentence than the one closest to the question, the pair
    gets the score of the closest sentence. Otherwise it keeps its score.
    """

    def __init__(self, encoder: Encoder, settings: FocusSettings | None = None) -> None:
        """`settings` defaults to those of the shipped model."""
        self._encoder = encoder
        self._settings = settings or shipped_recipe().focus

    @property
    def id(self) -> str:
        """The encoder's id and the settings in one line."""
        return describe(self._settings, encoder=self._encoder.id)

    def score(self, score: Score, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns the scores that `score` gives to (older, newer) pairs, after a second look."""
        found = score(question, pairs)
        if not question.strip():
            return found
        return [
            self._second_look(score, question, pair, whole)
            if whole >= self._settings.worth
            else whole
            for pair, whole in zip(pairs, found, strict=True)
        ]

    def _second_look(
        self, score: Score, question: str, pair: tuple[str, str], whole: float
    ) -> float:
        older, newer = pair
        sentences = sentences_of(older)
        if len(sentences) < 2:
            return whole
        vectors = self._encoder.encode([question, newer, *sentences])
        to_question, to_newer = (vectors[2:] @ vectors[n] for n in (0, 1))
        asked = int(np.argmax(to_question))
        (own,) = score(question, [(sentences[asked], newer)])
        if own >= self._settings.untouched:
            return whole
        # The sentence that changed is probably among those most similar to the newer text.
        others = [int(n) for n in np.argsort(-to_newer, kind="stable") if n != asked]
        read = [(sentences[n], newer) for n in others[: self._settings.others]]
        elsewhere = max(score(question, read))
        return own if elsewhere > own + self._settings.elsewhere else whole
