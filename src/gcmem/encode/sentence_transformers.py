"""Any sentence-transformers model as an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gcmem.errors import MissingExtraError
from gcmem.protocols import Vectors


class SentenceTransformersEncoder:
    """A sentence-transformers model by name or folder; needs the extra `sentence-transformers`."""

    def __init__(self, model: str, *, device: str = "cpu", batch_size: int = 32) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtraError(
                "sentence-transformers", package="sentence-transformers"
            ) from None
        self._model: Any = SentenceTransformer(model, device=device)
        self._batch_size = batch_size
        # Before version 6, the method had the longer name.
        width = getattr(self._model, "get_embedding_dimension", None)
        self.dimensions: int = (width or self._model.get_sentence_embedding_dimension)()
        self.id = f"sentence-transformers:{model}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per text."""
        vectors: Vectors = self._model.encode(
            list(texts),
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
        ).astype(np.float32)
        return vectors.reshape(len(texts), self.dimensions)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count by the model's own tokenizer."""
        return [len(self._model.tokenizer.tokenize(text)) for text in texts]
