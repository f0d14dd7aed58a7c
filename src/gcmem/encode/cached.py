"""An encoder that encodes each text once per call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gcmem.calls import current_call
from gcmem.protocols import Encoder, QueryEncoder, Vectors
from gcmem.vectors import encode, encode_queries


class CachedEncoder:
    """Encodes each text once per call; calls don't share vectors.

    The stages of one search need the vectors of the same texts. A cache shared between calls would
    let one caller find out which texts another has used.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.id = encoder.id
        self.dimensions = encoder.dimensions

    @classmethod
    def around(cls, encoder: Encoder) -> CachedEncoder:
        """Wraps an encoder; returns the encoder itself if it is cached already."""
        return encoder if isinstance(encoder, cls) else cls(encoder)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per text; encodes only texts that are new in this call."""
        return self._once("vector", encode, texts)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per question; the same as `encode` if the encoder has one way."""
        if not isinstance(self._encoder, QueryEncoder):
            return self.encode(texts)
        return self._once("query vector", encode_queries, texts)

    def _once(
        self, kind: str, compute: Callable[[Encoder, Sequence[str]], Vectors], texts: Sequence[str]
    ) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        computed = current_call().computed
        keys = {text: (kind, self.id, text) for text in texts}
        missing = [text for text, key in keys.items() if key not in computed]
        if missing:
            vectors = compute(self._encoder, missing)
            computed.update(zip((keys[text] for text in missing), vectors, strict=True))
        return np.stack([computed[keys[text]] for text in texts])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, by the wrapped encoder."""
        return self._encoder.count_tokens(texts)
