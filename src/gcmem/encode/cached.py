"""An encoder that encodes each text once per call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcmem.calls import current_call
from gcmem.protocols import Encoder, Vectors
from gcmem.vectors import encode


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
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        computed = current_call().computed
        keys = {text: ("vector", self.id, text) for text in texts}
        missing = [text for text, key in keys.items() if key not in computed]
        if missing:
            vectors = encode(self._encoder, missing)
            computed.update(zip((keys[text] for text in missing), vectors, strict=True))
        return np.stack([computed[keys[text]] for text in texts])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, by the wrapped encoder."""
        return self._encoder.count_tokens(texts)
