"""Lays rows out as tensors, in worker processes: tokenising is what a GPU would wait for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.utils.data import IterableDataset, get_worker_info
from training.kappa.draw import MAX_OPTIONS, AnswerRow, Draw, Mixture, PairRow, StanceRow

from gcmem.conflict.cross_encoder import END, PAD, SPECIAL, layout

MAX_TOKENS = 128
Task = Literal["pair", "stance", "answer"]
GAPS = (0.0, 0.1, 0.2)
"""How large a share of a sentence's tokens is left out."""


@dataclass
class Batch:
    """Rows of one task; those of stances have `options`: where each closes, 0 for none."""

    task: Task
    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor
    options: torch.Tensor | None = None

    def to(self, device: str) -> Batch:
        """Returns the batch on a device."""
        tensors = (self.ids, self.mask, self.labels, self.options)
        return Batch(self.task, *(None if t is None else t.to(device) for t in tensors))


class Texts:
    """Tokenises every text once, in BERT's vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._ids: dict[str, list[int]] = {}

    def _row(self, texts: Sequence[str]) -> list[int]:
        for text in texts:
            if text not in self._ids:
                ids = self._tokenizer.encode(text, add_special_tokens=False).ids
                self._ids[text] = [i for i in ids if i not in SPECIAL]
        return layout([self._ids[t] for t in texts], room=MAX_TOKENS)

    def pairs(self, rows: Sequence[PairRow]) -> Batch:
        """Returns a batch of the pair task; the label -1 stands for an unknown one."""
        ids, mask = padded([self._row(row.texts) for row in rows])
        labels = [-1.0 if row.label is None else row.label for row in rows]
        return Batch("pair", ids, mask, torch.tensor(labels))

    def answers(self, rows: Sequence[AnswerRow]) -> Batch:
        """Returns a batch of the answer task."""
        ids, mask = padded([self._row((row.question, row.sentence)) for row in rows])
        return Batch("answer", ids, mask, torch.tensor([row.label for row in rows]))

    def stances(self, rows: Sequence[StanceRow], *, gaps: random.Random | None = None) -> Batch:
        """Returns a batch of the stance task; the label MAX_OPTIONS stands for no option.

        With `gaps`, sentences lose some of their words: one that is never read twice alike is
        harder to learn by heart.
        """
        sequences = [self._row((r.question, *r.options, r.sentence)) for r in rows]
        if gaps is not None:
            sequences = [_with_gaps(sequence, gaps) for sequence in sequences]
        ids, mask = padded(sequences)
        closes = np.zeros((len(rows), MAX_OPTIONS), dtype=np.int64)
        for n, (row, sequence) in enumerate(zip(rows, sequences, strict=True)):
            ends = [at for at, token in enumerate(sequence) if token == END]
            closes[n, : len(row.options)] = ends[1 : 1 + len(row.options)]
        labels = [MAX_OPTIONS if r.label is None else r.label for r in rows]
        options = torch.from_numpy(closes)
        return Batch("stance", ids, mask, torch.tensor(labels), options=options)


def _with_gaps(sequence: list[int], rng: random.Random) -> list[int]:
    """Returns a row whose last text has lost some tokens."""
    start = max(at for at, token in enumerate(sequence[:-1]) if token == END) + 1
    share = rng.choice(GAPS)
    kept = [token for token in sequence[start:-1] if rng.random() >= share]
    return [*sequence[:start], *kept, END]


def padded(sequences: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns ids and mask of sequences of any lengths."""
    ids = np.full((len(sequences), max(map(len, sequences))), PAD, dtype=np.int64)
    mask = np.zeros_like(ids)
    for n, sequence in enumerate(sequences):
        ids[n, : len(sequence)] = sequence
        mask[n, : len(sequence)] = 1
    return torch.from_numpy(ids), torch.from_numpy(mask)


class Stream(IterableDataset[list[Batch]]):
    """Batches for ever: the pairs in two passes, the shorter and the longer, then the others."""

    def __init__(
        self, make_draw: Callable[[int], Draw], texts: Texts, mixture: Mixture, *, seed: int
    ) -> None:
        self._make_draw, self._texts = make_draw, texts
        self._mixture, self._seed = mixture, seed

    def __iter__(self) -> Iterator[list[Batch]]:
        worker = get_worker_info()
        seed = self._seed * 1000 + (worker.id if worker else 0)
        draw, gaps = self._make_draw(seed), random.Random(seed)
        while True:
            pairs = sorted(draw.pairs(self._mixture), key=lambda r: sum(map(len, r.texts)))
            cut = 2 * len(pairs) // 3
            batches = [self._texts.pairs(pairs[:cut]), self._texts.pairs(pairs[cut:])]
            if stances := draw.stances(self._mixture):
                batches.append(self._texts.stances(stances, gaps=gaps))
            if answers := draw.answers(self._mixture):
                batches.append(self._texts.answers(answers))
            yield batches
