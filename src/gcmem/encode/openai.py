"""Embeddings from any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gcmem import deadline
from gcmem.errors import ModelResponseError
from gcmem.llm import openai_client, translated_errors
from gcmem.protocols import Vectors

BATCH = 128
CHARS_PER_TOKEN = 4


class OpenAIEncoder:
    """An `/embeddings` endpoint as an encoder; needs the extra `llm`."""

    def __init__(
        self,
        *,
        model: str = "text-embedding-3-small",
        dimensions: int = 1536,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout_s: float = 30.0,
        max_retries: int = 3,
    ) -> None:
        self._client: Any = openai_client(
            api_key=api_key, base_url=base_url, timeout_s=timeout_s, max_retries=max_retries
        )
        self._model = model
        # Only these models can return fewer dimensions than they have.
        shortens = model.startswith("text-embedding-3")
        self._shorten: dict[str, int] = {"dimensions": dimensions} if shortens else {}
        self.dimensions = dimensions
        self.id = f"openai:{model}:{dimensions}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per text."""
        rows: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            deadline.check()
            batch = list(texts[start : start + BATCH])
            with translated_errors(self._client):
                response = self._client.embeddings.create(
                    model=self._model, input=batch, encoding_format="float", **self._shorten
                )
            rows.extend(item.embedding for item in sorted(response.data, key=lambda d: d.index))
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), -1 if rows else 0)
        if rows and vectors.shape[1] != self.dimensions:
            raise ModelResponseError(
                f"{self._model} returned {vectors.shape[1]} dimensions, not {self.dimensions}; "
                f"pass dimensions={vectors.shape[1]}"
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalised: Vectors = vectors / np.maximum(norms, 1e-12)
        return normalised

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimates token counts from text lengths: the endpoint does not count in advance."""
        return [len(text) // CHARS_PER_TOKEN + 1 for text in texts]
