"""Derives claims from chunks: sentences that say how things are, which a later one can change."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from gcmem.indexed_text import dense_text
from gcmem.languages import looks_english
from gcmem.protocols import Encoder, FoundClaim
from gcmem.sentences import clause_spans, is_question
from gcmem.types import Chunk, Span

SHIPPED = Path(__file__).parents[1] / "models" / "claims"
ASSISTANT = "assistant"
LEAST_WORDS = 2
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[^\w\s]")
WORDS = 1 << 14
"""How many different numbers words have; a few words share one."""


def statements_of(text: str, *, least_words: int = 1) -> list[Span]:
    """Returns the places of the sentences and clauses of a text that are not questions."""
    return [
        (start, end)
        for start, end in clause_spans(text)
        if not is_question(text[start:end]) and len(text[start:end].split()) >= least_words
    ]


class EveryStatement:
    """Takes everything that is not a question for a claim."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.encoder_id = encoder.id
        self.id = f"every-statement@1 ({encoder.id})"

    def find(self, chunks: Sequence[Chunk]) -> list[list[FoundClaim]]:
        """Returns the statements of each chunk."""
        found = [statements_of(chunk.text) for chunk in chunks]
        vectors = iter(self._encoder.encode(_texts(chunks, found)))
        return [[FoundClaim(span, next(vectors)) for span in spans] for spans in found]


class ClaimDetector:
    """Tells claims from events, requests, advice and small talk, by their words and their vector.

    It was taught English alone. In other languages every statement counts as a claim.
    """

    def __init__(self, encoder: Encoder, *, folder: Path = SHIPPED) -> None:
        """`encoder` must be the one that it was trained with."""
        settings: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        self._encoder = encoder
        self.encoder_id = encoder.id
        self._words = np.load(folder / "words.npy").astype(np.float32)
        self._vector = np.load(folder / "vector.npy")
        self._settings = settings
        self.id = f"{settings['name']}@{settings['version']}"

    def find(self, chunks: Sequence[Chunk]) -> list[list[FoundClaim]]:
        """Returns the claims of each chunk, in the order of its text."""
        worth = [self._worth_reading(chunk) for chunk in chunks]
        vectors = iter(self._encoder.encode(_texts(chunks, [list(spans) for spans in worth])))
        found: list[list[FoundClaim]] = []
        for chunk, spans in zip(chunks, worth, strict=True):
            claims = [(FoundClaim(span, next(vectors)), words) for span, words in spans.items()]
            found.append(
                [
                    claim
                    for claim, words in claims
                    if words + float(self._vector @ claim.vector) >= self._threshold(chunk)
                ]
            )
        return found

    def _threshold(self, chunk: Chunk) -> float:
        by_assistant = chunk.speaker == ASSISTANT
        threshold: float = self._settings["assistant_threshold" if by_assistant else "threshold"]
        return threshold

    def _worth_reading(self, chunk: Chunk) -> dict[Span, float]:
        """Returns the statements whose words don't rule a claim out, with the words' score."""
        found = {}
        is_english = looks_english(chunk.text)
        for start, end in statements_of(chunk.text, least_words=LEAST_WORDS):
            used = word_features(chunk.text[start:end], is_assistant=chunk.speaker == ASSISTANT)
            score = float(self._words[used].sum() / np.sqrt(len(used))) + self._settings["bias"]
            if not is_english:
                found[start, end] = np.inf
            elif score >= self._settings["worth_reading"]:
                found[start, end] = score
        return found


def word_features(text: str, *, is_assistant: bool) -> list[int]:
    """Returns numbers for the words of a sentence, pairs of words, its beginning and length.

    Each stands once for itself and once for the kind of speaker.
    """
    words = ["0" if word.isdigit() else word for word in WORD.findall(text.casefold())]
    named = [
        *(f"one {word}" for word in words),
        *(f"two {a} {b}" for a, b in pairwise(["<", *words, ">"])),
        f"starts {' '.join(words[:1])}",
        f"starts {' '.join(words[:2])}",
        f"length {min(len(words) // 4, 8)}",
    ]
    speaker = "assistant " if is_assistant else "other "
    hashes = {crc32(name.encode()) for part in named for name in (part, speaker + part)}
    return sorted({value % WORDS for value in hashes})


def _texts(chunks: Sequence[Chunk], spans: Sequence[Sequence[Span]]) -> list[str]:
    return [
        dense_text(chunk.text[start:end], speaker=chunk.speaker)
        for chunk, places in zip(chunks, spans, strict=True)
        for start, end in places
    ]
