"""The shipped encoder: a tuned all-MiniLM-L6-v2 as 8-bit ONNX, run by onnxruntime."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcmem.onnx_models import open_model, open_tokenizer
from gcmem.protocols import Vectors

FOLDER = Path(__file__).parent.parent / "models" / "encoder"


class MiniLMEncoder:
    """all-MiniLM-L6-v2, half tuned to find what answers a question; loaded at first use.

    Texts are run one at a time: int8 activations are scaled over the whole input, so a batch
    would make a text's vector depend on its neighbours, and on a CPU it would be no faster.
    """

    id = "gcmem-encoder@2"
    dimensions = 384

    def __init__(self, *, threads: int = 1) -> None:
        """`threads` is the number of cores to use, 0 for all; short texts gain nothing by more."""
        self._threads = threads
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None

    def _load(self) -> None:
        with self._lock:
            if self._session is not None:
                return
            self._tokenizer = open_tokenizer(FOLDER / "tokenizer.json")
            self._session = open_model(FOLDER / "model.onnx", threads=self._threads)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector a text; text beyond 256 tokens is not seen."""
        self._load()
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, encoding in enumerate(self._tokenizer.encode_batch(list(texts))):
            ids = np.array([encoding.ids], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
            vectors[row] = self._session.run(None, inputs)[0][0]
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count without the two markers, counted past the 256 limit."""
        self._load()
        return [
            len(encoding.ids) + sum(len(rest.ids) for rest in encoding.overflowing)
            for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]
