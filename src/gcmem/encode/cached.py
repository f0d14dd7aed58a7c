"""An encoder that remembers: the past is immutable, so a text's vector is too."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from gcmem.protocols import Encoder, Vectors
from gcmem.vectors import encode


class CachedEncoder:
    """Keeps the vectors of the most recently used texts; safe from several threads."""

    def __init__(self, encoder: Encoder, *, capacity: int = 20_000) -> None:
        self._encoder = encoder
        self._capacity = capacity
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = threading.Lock()
        self.id = encoder.id
        self.dimensions = encoder.dimensions

    @classmethod
    def around(cls, encoder: Encoder) -> CachedEncoder:
        """Returns the encoder itself where it is cached already."""
        return encoder if isinstance(encoder, cls) else cls(encoder)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector a text, encoding only those not seen lately."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known.update(zip(missing, encode(self._encoder, missing), strict=True))
        with self._lock:
            for text in texts:
                self._vectors[text] = known[text]
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)
        return np.stack([known[text] for text in texts])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count by the encoder behind."""
        return self._encoder.count_tokens(texts)
