"""The shipped encoder: a tuned all-MiniLM-L6-v2 as 8-bit ONNX, run by onnxruntime."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcmem import deadline
from gcmem.onnx_models import open_model, open_tokenizer
from gcmem.protocols import Vectors

FOLDER = Path(__file__).parent.parent / "models" / "encoder"


class MiniLMEncoder:
    """all-MiniLM-L6-v2, averaged with a version tuned to find answers; loaded at first use.

    It runs each text separately: int8 activations are scaled over the whole input, so in a batch a
    text's vector would depend on its neighbours. On a CPU, a batch would be no faster.
    """

    id = "gcmem-encoder@2"
    dimensions = 384

    def __init__(self, *, workers: int = 2) -> None:
        """`workers` is the number of texts encoded at once, each on one core."""
        self._workers = workers
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None

    def _load(self) -> None:
        with self._lock:
            if self._session is not None:
                return
            self._tokenizer = open_tokenizer(FOLDER / "tokenizer.json")
            self._session = open_model(FOLDER / "model.onnx", threads=1)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per text; ignores everything after 256 tokens."""
        self._load()
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        if len(rows) < 2:  # for a single question, a thread pool would only cost time
            with deadline.step():
                found = [self._vector(row) for row in rows]
        else:
            found = deadline.map_in_threads(self._vector, rows, workers=self._workers)
        for number, vector in enumerate(found):
            vectors[number] = vector
        return vectors

    def _vector(self, row: list[int]) -> Any:
        ids = np.array([row], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return self._session.run(None, inputs)[0][0]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, beyond 256 too, without the two special tokens."""
        self._load()
        return [
            len(encoding.ids) + sum(len(rest.ids) for rest in encoding.overflowing)
            for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]
