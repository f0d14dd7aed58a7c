"""The shipped κ: a small cross-encoder that reads the question and both chunks together."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from gcmem.onnx_models import open_model, open_tokenizer

MODELS = Path(__file__).parent.parent / "models"
FOLDER = MODELS / "kappa"
TOKENIZER = MODELS / "encoder" / "tokenizer.json"  # the two models share their vocabulary


class LocalClassifier:
    """Scores pairs in milliseconds on a CPU, without a language model; loaded at first use.

    The score is calibrated on held-out pairs and symmetric: the two texts are read in
    alphabetical order. Pairs are run one at a time, so that a verdict never depends on what else
    was in the batch (int8 activations are scaled over the whole input).
    """

    def __init__(self, *, workers: int = 2) -> None:
        """`workers` is how many pairs are read at once, one core each."""
        self._settings: dict[str, Any] = json.loads((FOLDER / "config.json").read_text("utf-8"))
        self._workers = workers
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None
        self.id = f"{self._settings['name']}@{self._settings['version']}"
        self.threshold: float = self._settings["threshold"]

    def _load(self) -> None:
        with self._lock:
            if self._session is not None:
                return
            self._tokenizer = open_tokenizer(TOKENIZER)
            self._tokenizer.no_truncation()
            self._session = open_model(FOLDER / "model.onnx", threads=1)

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns, for each pair, how surely the two can't both be true now."""
        if not pairs:
            return []
        self._load()
        texts = list(dict.fromkeys([question, *(text for pair in pairs for text in pair)]))
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        tokens = {text: encoding.ids for text, encoding in zip(texts, encodings, strict=True)}
        rows = [
            layout(
                [tokens[question], *(tokens[text] for text in sorted(pair))],
                room=self._settings["max_tokens"],
                start=START,
                end=END,
            )
            for pair in pairs
        ]
        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(self._probability, rows))

    def _probability(self, row: list[int]) -> float:
        ids = np.array([row], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        logit = float(self._session.run(None, inputs)[0][0])
        return 1 / (1 + math.exp(-(self._settings["scale"] * logit + self._settings["bias"])))


START, END = 101, 102  # [CLS] and [SEP] of the vocabulary


def layout(parts: list[list[int]], *, room: int, start: int, end: int) -> list[int]:
    """Joins token lists with separators; a part may take what the others leave of the room.

    Training lays its rows out with this function too: the model must see what it was taught on.
    """
    left = room - 1 - len(parts)
    row = [start]
    for number, part in enumerate(parts):
        fair = left // (len(parts) - number)
        spare = sum(max(0, fair - len(other)) for other in parts[number + 1 :])
        cut = part[: fair + spare]
        left -= len(cut)
        row += [*cut, end]
    return row
