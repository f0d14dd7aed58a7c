"""The shipped κ: a cross-encoder that reads the question with two chunks, or options and one."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gcmem.onnx_models import open_model, open_tokenizer

MODELS = Path(__file__).parent.parent / "models"
FOLDER = MODELS / "kappa"
TOKENIZER = MODELS / "encoder" / "tokenizer.json"  # the two models share their vocabulary


REMEMBERED = 20_000
"""Stances that are kept in memory, at the most."""


class LocalClassifier:
    """Reads pairs and stances on a CPU, without a language model; loaded at first use.

    A pair's score is calibrated on held-out pairs and symmetric: the two texts are read in
    alphabetical order. Rows are run one at a time, so that a verdict never depends on what else
    was in the batch (8-bit activations are scaled over the whole input).
    """

    def __init__(self, *, workers: int = 2) -> None:
        """`workers` is how many rows are read at once, one core each."""
        self._settings: dict[str, Any] = json.loads((FOLDER / "config.json").read_text("utf-8"))
        self._workers = workers
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None
        # The oracle and the reader ask for the same stances.
        self._stances: dict[tuple[tuple[str, ...], str], tuple[float, ...]] = {}
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
        tokens = self._tokens([question, *(text for pair in pairs for text in pair)])
        rows = [
            self._layout([tokens[question], *(tokens[text] for text in sorted(pair))])
            for pair in pairs
        ]
        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(self._conflict, rows))

    def stances(
        self, question: str, options: Sequence[str], texts: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Returns, for each text, the probability of every option, and last that of none."""
        asked = (question, *options)
        with self._lock:
            known = {text: self._stances.get((asked, text)) for text in texts}
        missing = [text for text, stance in known.items() if stance is None]
        if missing:
            tokens = self._tokens([*asked, *missing])
            rows = [self._layout([*(tokens[t] for t in asked), tokens[text]]) for text in missing]
            with ThreadPoolExecutor(self._workers) as pool:
                read = list(pool.map(partial(self._stance, count=len(options)), rows))
            known.update(zip(missing, read, strict=True))
            with self._lock:
                if len(self._stances) > REMEMBERED:
                    self._stances.clear()
                self._stances.update(((asked, t), s) for t, s in zip(missing, read, strict=True))
        return [stance for text in texts if (stance := known[text]) is not None]

    def _tokens(self, texts: Sequence[str]) -> dict[str, list[int]]:
        self._load()
        different = list(dict.fromkeys(texts))
        encodings = self._tokenizer.encode_batch(different, add_special_tokens=False)
        return {
            text: [token for token in encoding.ids if token not in SPECIAL]
            for text, encoding in zip(different, encodings, strict=True)
        }

    def _layout(self, parts: list[list[int]]) -> list[int]:
        return layout(parts, room=self._settings["max_tokens"])

    def _run(self, row: list[int], outputs: list[str]) -> list[Any]:
        ids = np.array([row], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return [found[0] for found in self._session.run(outputs, inputs)]

    def _conflict(self, row: list[int]) -> float:
        (logit,) = self._run(row, ["pair"])
        scaled = self._settings["scale"] * float(logit) + self._settings["bias"]
        return 1 / (1 + math.exp(-scaled))

    def _stance(self, row: list[int], *, count: int) -> tuple[float, ...]:
        none, every = self._run(row, ["none", "option"])
        # An option's logit stands at the separator that closes it; the question's comes first.
        closes = [place for place, token in enumerate(row) if token == END][1 : count + 1]
        logits = np.array([*(every[place] for place in closes), none], dtype=np.float64)
        shares = np.exp(logits - logits.max())
        return tuple(float(share) for share in shares / shares.sum())


PAD, START, END = 0, 101, 102  # [PAD], [CLS] and [SEP] of the vocabulary
SPECIAL = frozenset({PAD, START, END, 103})  # a text that spells one out must not pose as it


def layout(parts: list[list[int]], *, room: int) -> list[int]:
    """Joins token lists with separators; a part may take what the others leave of the room.

    Training lays its rows out with this function too: the model must see what it was taught on.
    """
    left = room - 1 - len(parts)
    row = [START]
    for number, part in enumerate(parts):
        fair = left // (len(parts) - number)
        spare = sum(max(0, fair - len(other)) for other in parts[number + 1 :])
        cut = part[: fair + spare]
        left -= len(cut)
        row += [*cut, END]
    return row
