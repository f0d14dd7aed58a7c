"""A reader without a language model: it chooses an option by vote, or quotes a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from gcmem.protocols import AnswerClassifier, Encoder, StanceClassifier, Vectors
from gcmem.sentences import sentences_of, states_something
from gcmem.types import Prompt, Reading

SHARPNESS = 20.0
"""How much a chunk's similarity to the question counts in the vote."""
POSITION_DISCOUNT = 0.97
"""Weight of each chunk relative to the one before: language models favour early chunks too."""
MIN_ON_TOPIC = 0.2
"""Stances decide the vote if a chunk is on the topic with at least this probability."""
MAX_OPTIONS = 8
"""With more options than this, stances are not used: training had five at most."""
SENTENCES_SCORED = 8
"""How many of the closest sentences are scored as answers."""
MIN_LEAD = 0.05
"""In mode "allow-unclear", the reader abstains if the winner leads by a smaller share."""
MIN_ANSWER_SCORE = 0.05
"""In mode "allow-unclear", the reader abstains if the best sentence scores lower."""


class LocalReader:
    """Votes or quotes: it never says anything that no chunk says.

    With options, every chunk votes by its stance, weighted by how much it is on the topic. If no
    chunk is on the topic, or without `stances`, chunks vote by similarity; if some chunks mention
    an option, only those vote. Earlier chunks weigh a little more.
    Without options, it quotes the sentence that answers the question best, out of the closest
    ones. It never quotes a question.
    """

    def __init__(
        self,
        encoder: Encoder,
        stances: StanceClassifier | None = None,
        answers: AnswerClassifier | None = None,
    ) -> None:
        self._encoder = encoder
        self._stances = stances
        self._answers = answers
        self.id = f"local:{encoder.id}" if stances is None else f"local:{stances.id}"

    def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
        """Returns one reading per prompt."""
        return tuple(self._vote(p) if p.options else self._quote(p) for p in prompts)

    def _vote(self, prompt: Prompt) -> Reading:
        counts, total = self._counts(prompt)
        shares = _shares(counts, total)
        order = np.argsort(-shares)
        best, lead = int(order[0]), float(shares[order[0]])
        if len(order) > 1:
            lead -= float(shares[order[1]])
        if prompt.mode == "allow-unclear" and (not prompt.chunks or lead < MIN_LEAD):
            return Reading(text="unclear")
        choice = prompt.options[best]
        source = prompt.chunks[int(np.argmax(counts[:, best]))].id if prompt.chunks else None
        return Reading(text=choice, choice=choice, source=source)

    def shares(self, prompt: Prompt) -> Vectors:
        """Returns each option's share of the vote; equal shares if there are no chunks."""
        return _shares(*self._counts(prompt))

    def _counts(self, prompt: Prompt) -> tuple[Vectors, float]:
        """Returns the weighted votes (rows: chunks, columns: options) and the sum of weights."""
        if not prompt.chunks:
            return np.empty((0, len(prompt.options)), dtype=np.float32), 0.0
        votes, weights = self._votes(prompt)
        weights = weights * POSITION_DISCOUNT ** np.arange(len(weights))
        total = max(float(weights.sum()), 1e-9)
        counts: Vectors = weights[:, None] * votes
        return counts, total

    def _votes(self, prompt: Prompt) -> tuple[Vectors, Vectors]:
        """Returns each chunk's votes for the options, and its weight."""
        texts = [chunk.text for chunk in prompt.chunks]
        if self._stances is not None and len(prompt.options) <= MAX_OPTIONS:
            said = np.array(
                self._stances.stances(prompt.question, prompt.options, texts), dtype=np.float32
            )
            on_topic: Vectors = 1 - said[:, -1]
            if on_topic.max() >= MIN_ON_TOPIC:
                sure = said[:, :-1] / np.maximum(on_topic[:, None], 1e-9)
                return sure.astype(np.float32), on_topic
        votes, weights = self._by_similarity(prompt, texts)
        named = np.array([any(_mentions(text, o) for o in prompt.options) for text in texts])
        return votes, weights * named if named.any() else weights

    def _by_similarity(self, prompt: Prompt, texts: list[str]) -> tuple[Vectors, Vectors]:
        chunks = self._encoder.encode(texts)
        question = self._encoder.encode([prompt.question])[0]
        options = self._encoder.encode([f"{prompt.question} {o}" for o in prompt.options])
        relevance = chunks @ question
        votes = np.exp(SHARPNESS * (chunks @ options.T))
        votes /= votes.sum(axis=1, keepdims=True)
        return votes, np.exp(SHARPNESS * (relevance - relevance.max()))

    def _quote(self, prompt: Prompt) -> Reading:
        every = ((s, chunk.id) for chunk in prompt.chunks for s in sentences_of(chunk.text))
        sentences = [(sentence, source) for sentence, source in every if states_something(sentence)]
        if not sentences:
            return Reading(text="unclear")
        vectors = self._encoder.encode([prompt.question, *(said for said, _ in sentences)])
        close = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")
        if self._answers is None:
            said, source = sentences[int(close[0])]
            return Reading(text=said, source=source)
        near = [sentences[n] for n in close[:SENTENCES_SCORED]]
        sure = self._answers.answers(prompt.question, [said for said, _ in near])
        best = int(np.argmax(sure))
        if prompt.mode == "allow-unclear" and sure[best] < MIN_ANSWER_SCORE:
            return Reading(text="unclear")
        said, source = near[best]
        return Reading(text=said, source=source)


def _shares(counts: Vectors, total: float) -> Vectors:
    """Returns each option's share of the vote; equal shares if there are no votes."""
    if not len(counts):
        return np.full(counts.shape[1], 1 / counts.shape[1], dtype=np.float32)
    shares: Vectors = counts.sum(axis=0) / total
    return shares


def _mentions(text: str, option: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE) is not None
