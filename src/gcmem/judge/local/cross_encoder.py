"""Runs the shipped cross-encoders on texts joined into one row of tokens."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gcmem.onnx_models import open_model, open_tokenizer

TOKENIZER = Path(__file__).parents[2] / "models" / "encoder" / "tokenizer.json"
"""All shipped models share this vocabulary."""
PAD, START, END = 0, 101, 102  # [PAD], [CLS] and [SEP] of the vocabulary
SPECIAL = frozenset({PAD, START, END, 103})  # a text must not be able to insert one


class CrossEncoder:
    """One ONNX model, loaded at first use and safe to run from several threads.

    Rows are run one at a time: 8-bit activations are scaled over the whole input, so in a batch
    the rows would affect each other.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._session: Any = None

    def run(self, row: Sequence[int], outputs: Sequence[str]) -> list[Any]:
        """Returns the named outputs for one row of tokens."""
        if self._session is None:
            with self._lock:
                # One thread per row: the caller runs several rows at once.
                self._session = self._session or open_model(self.path, threads=1)
        ids = np.array([row], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return [found[0] for found in self._session.run(list(outputs), inputs)]


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    tokenizer = open_tokenizer(TOKENIZER)
    tokenizer.no_truncation()
    return tokenizer


def tokens_of(texts: Sequence[str]) -> dict[str, list[int]]:
    """Returns the tokens of each text, without special tokens."""
    different = list(dict.fromkeys(texts))
    encodings = _tokenizer().encode_batch(different, add_special_tokens=False)
    return {
        text: [token for token in encoding.ids if token not in SPECIAL]
        for text, encoding in zip(different, encodings, strict=True)
    }


def layout(parts: list[list[int]], *, max_tokens: int) -> list[int]:
    """Joins token lists with separators, and cuts them to `max_tokens` in all.

    Short parts leave their share to longer ones. Training uses this function too, so that the
    model sees the layout it was trained on.
    """
    left = max_tokens - 1 - len(parts)
    row = [START]
    for number, part in enumerate(parts):
        fair = left // (len(parts) - number)
        spare = sum(max(0, fair - len(other)) for other in parts[number + 1 :])
        cut = part[: fair + spare]
        left -= len(cut)
        row += [*cut, END]
    return row


def pair_rows(
    question: str, pairs: Sequence[tuple[str, str]], *, max_tokens: int
) -> list[list[int]]:
    """Returns one row per pair, its texts in alphabetical order: that makes scores symmetric."""
    tokens = tokens_of([question, *(text for pair in pairs for text in pair)])
    return [
        layout([tokens[question], *(tokens[text] for text in sorted(pair))], max_tokens=max_tokens)
        for pair in pairs
    ]
