"""A reader without a language model: it votes between options, or quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from gcmem.protocols import Encoder, Vectors
from gcmem.types import Prompt, Reading

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
SHARPNESS = 20.0
"""How much a chunk's similarity to the question counts in the vote."""
POSITION_DISCOUNT = 0.97
"""What is shown first counts a little more, as it does with language models."""
UNCLEAR_SHARE = 0.05
"""Allowed to be unclear, it abstains when the winner leads by less than this share."""


class LocalReader:
    """Compares embeddings: it neither reasons nor writes, and never says what no chunk says.

    Given options, every chunk votes for the option it is most similar to, weighted by how close
    the chunk is to the question and how early it is shown. Without options, it quotes the
    sentence closest to the question.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.id = f"local:{encoder.id}"

    def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
        """Returns one reading a prompt."""
        return tuple(self._vote(p) if p.options else self._quote(p) for p in prompts)

    def _vote(self, prompt: Prompt) -> Reading:
        shares = self.shares(prompt)
        order = np.argsort(-shares)
        best, lead = int(order[0]), float(shares[order[0]])
        if len(order) > 1:
            lead -= float(shares[order[1]])
        if prompt.mode == "allow-unclear" and (not prompt.chunks or lead < UNCLEAR_SHARE):
            return Reading(text="unclear")
        choice = prompt.options[best]
        return Reading(text=choice, choice=choice)

    def shares(self, prompt: Prompt) -> Vectors:
        """Returns each option's share of the vote; equal shares where there is no chunk."""
        if not prompt.chunks:
            return np.full(len(prompt.options), 1 / len(prompt.options), dtype=np.float32)
        chunks = self._encoder.encode([chunk.text for chunk in prompt.chunks])
        question = self._encoder.encode([prompt.question])[0]
        options = self._encoder.encode([f"{prompt.question} {o}" for o in prompt.options])
        relevance = chunks @ question
        weights = np.exp(SHARPNESS * (relevance - relevance.max()))
        weights *= POSITION_DISCOUNT ** np.arange(len(weights))
        votes = np.exp(SHARPNESS * (chunks @ options.T))
        votes /= votes.sum(axis=1, keepdims=True)
        shares: Vectors = (weights[:, None] * votes).sum(axis=0) / weights.sum()
        return shares

    def _quote(self, prompt: Prompt) -> Reading:
        sentences = [s for chunk in prompt.chunks for s in SENTENCE_END.split(chunk.text) if s]
        if not sentences:
            return Reading(text="unclear")
        vectors = self._encoder.encode([prompt.question, *sentences])
        return Reading(text=sentences[int(np.argmax(vectors[1:] @ vectors[0]))])
