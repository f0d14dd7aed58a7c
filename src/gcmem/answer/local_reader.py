"""A reader without a language model: it votes between options, or quotes."""

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
"""What is shown first counts a little more, as it does with language models."""
ON_TOPIC = 0.2
"""How far a chunk must be on the topic for the stances to decide the vote."""
MOST_OPTIONS = 8
"""Among more options than this, stances are not read: they were taught with five at the most."""
READ = 8
"""How many sentences are read for the best answer."""
UNCLEAR_SHARE = 0.05
"""Allowed to be unclear, it abstains when the winner leads by less than this share."""
LEAST_ANSWER = 0.05
"""Allowed to be unclear, it abstains where no sentence answers the question as surely as this."""


class LocalReader:
    """Votes and quotes: it neither reasons nor writes, and never says what no chunk says.

    Given options, every chunk votes for the one it speaks for, as far as it is on the topic
    (`stances`). Where no chunk is, or nothing reads stances, those that name an option vote, or if
    none does all, by similarity to the question with each option. What is shown earlier counts a
    little more.
    Without options, it quotes the sentence that answers the question best (`answers`), of those
    that are closest to it; never one that only asks.
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
        """Returns one reading a prompt."""
        return tuple(self._vote(p) if p.options else self._quote(p) for p in prompts)

    def _vote(self, prompt: Prompt) -> Reading:
        counts, total = self._counts(prompt)
        shares = _shares(counts, total)
        order = np.argsort(-shares)
        best, lead = int(order[0]), float(shares[order[0]])
        if len(order) > 1:
            lead -= float(shares[order[1]])
        if prompt.mode == "allow-unclear" and (not prompt.chunks or lead < UNCLEAR_SHARE):
            return Reading(text="unclear")
        choice = prompt.options[best]
        source = prompt.chunks[int(np.argmax(counts[:, best]))].id if prompt.chunks else None
        return Reading(text=choice, choice=choice, source=source)

    def shares(self, prompt: Prompt) -> Vectors:
        """Returns each option's share of the vote; equal shares where there is no chunk."""
        return _shares(*self._counts(prompt))

    def _counts(self, prompt: Prompt) -> tuple[Vectors, float]:
        """Returns how much each chunk (rows) gives to each option (columns), and the sum of all."""
        if not prompt.chunks:
            return np.empty((0, len(prompt.options)), dtype=np.float32), 0.0
        votes, weights = self._votes(prompt)
        weights = weights * POSITION_DISCOUNT ** np.arange(len(weights))
        total = max(float(weights.sum()), 1e-9)
        counts: Vectors = weights[:, None] * votes
        return counts, total

    def _votes(self, prompt: Prompt) -> tuple[Vectors, Vectors]:
        """Returns each chunk's vote over the options, and how much it counts."""
        texts = [chunk.text for chunk in prompt.chunks]
        if self._stances is not None and len(prompt.options) <= MOST_OPTIONS:
            said = np.array(
                self._stances.stances(prompt.question, prompt.options, texts), dtype=np.float32
            )
            on_topic: Vectors = 1 - said[:, -1]
            if on_topic.max() >= ON_TOPIC:
                sure = said[:, :-1] / np.maximum(on_topic[:, None], 1e-9)
                return sure.astype(np.float32), on_topic
        votes, weights = self._by_similarity(prompt, texts)
        named = np.array([any(_names(text, o) for o in prompt.options) for text in texts])
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
        near = [sentences[n] for n in close[:READ]]
        sure = self._answers.answers(prompt.question, [said for said, _ in near])
        best = int(np.argmax(sure))
        if prompt.mode == "allow-unclear" and sure[best] < LEAST_ANSWER:
            return Reading(text="unclear")
        said, source = near[best]
        return Reading(text=said, source=source)


def _shares(counts: Vectors, total: float) -> Vectors:
    """Returns each option's share of the vote; equal shares where nothing votes."""
    if not len(counts):
        return np.full(counts.shape[1], 1 / counts.shape[1], dtype=np.float32)
    shares: Vectors = counts.sum(axis=0) / total
    return shares


def _names(text: str, option: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE) is not None
