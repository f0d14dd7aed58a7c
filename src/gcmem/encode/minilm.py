"""The shipped encoder: a small transformer taught by a larger one, as 8-bit ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gcmem.encode.onnx import OnnxSentenceModel
from gcmem.errors import InvalidInputError
from gcmem.protocols import Vectors

MODELS = Path(__file__).parent.parent / "models"
FOLDERS = {3: MODELS / "encoder", 2: MODELS / "encoder_2"}
"""The shipped versions, newest first; a store keeps working with the one that built it."""
NEWEST = max(FOLDERS)


class MiniLMEncoder:
    """MiniLM, taught to rank as nomic-embed-text-v1.5 does; loaded at first use."""

    dimensions = 384

    def __init__(self, *, workers: int = 2, version: int = NEWEST) -> None:
        """`workers` is the number of texts encoded at once, each on one core."""
        if version not in FOLDERS:
            raise InvalidInputError(f"version={version!r}: pass one of {sorted(FOLDERS)}")
        self.id = f"gcmem-encoder@{version}"
        self._model = OnnxSentenceModel(FOLDERS[version], max_tokens=256, workers=workers)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per text; ignores everything after 256 tokens."""
        return self._model.encode(texts, dimensions=self.dimensions)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns each text's token count, beyond 256 too, without the two special tokens."""
        return self._model.count_tokens(texts)
