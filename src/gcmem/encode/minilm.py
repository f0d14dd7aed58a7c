"""The shipped encoder: a tuned all-MiniLM-L6-v2 as 8-bit ONNX, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gcmem.encode.onnx import OnnxSentenceModel
from gcmem.protocols import Vectors

FOLDER = Path(__file__).parent.parent / "models" / "encoder"


class MiniLMEncoder:
    """all-MiniLM-L6-v2, averaged with a version tuned to find answers; loaded at first use."""

    id = "gcmem-encoder@2"
    dimensions = 384

    def __init__(self, *, workers: int = 2) -> None:
        """`workers` is the number of texts encoded at once, each on one core."""
        self._model = OnnxSentenceModel(FOLDER, max_tokens=256, workers=workers)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per text; ignores everything after 256 tokens."""
        return self._model.encode(texts, dimensions=self.dimensions)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, beyond 256 too, without the two special tokens."""
        return self._model.count_tokens(texts)
