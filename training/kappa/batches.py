"""Lays rows out as tensors, in worker processes: tokenising is what a GPU would wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.utils.data import IterableDataset, get_worker_info
from training.kappa.draw import MAX_OPTIONS, Draw, Mixture, PairRow, StanceRow

from gcmem.conflict.local import END, PAD, SPECIAL, layout

MAX_TOKENS = 128


@dataclass
class Batch:
    """Rows of one task: of pairs with `implied`, or of stances with `options`.

    `options` says where each option closes, 0 where there is none.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor
    implied: torch.Tensor | None = None
    options: torch.Tensor | None = None

    def to(self, device: str) -> Batch:
        """Returns the batch on a device."""
        tensors = (self.ids, self.mask, self.labels, self.implied, self.options)
        return Batch(*(None if t is None else t.to(device) for t in tensors))


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
        return Batch(ids, mask, torch.tensor(labels), torch.tensor([r.implied for r in rows]))

    def stances(self, rows: Sequence[StanceRow]) -> Batch:
        """Returns a batch of the stance task; the label MAX_OPTIONS stands for no option."""
        sequences = [self._row((r.question, *r.options, r.sentence)) for r in rows]
        ids, mask = padded(sequences)
        closes = np.zeros((len(rows), MAX_OPTIONS), dtype=np.int64)
        for n, (row, sequence) in enumerate(zip(rows, sequences, strict=True)):
            ends = [at for at, token in enumerate(sequence) if token == END]
            closes[n, : len(row.options)] = ends[1 : 1 + len(row.options)]
        labels = [MAX_OPTIONS if r.label is None else r.label for r in rows]
        return Batch(ids, mask, torch.tensor(labels), options=torch.from_numpy(closes))


def padded(sequences: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns ids and mask of sequences of any lengths."""
    ids = np.full((len(sequences), max(map(len, sequences))), PAD, dtype=np.int64)
    mask = np.zeros_like(ids)
    for n, sequence in enumerate(sequences):
        ids[n, : len(sequence)] = sequence
        mask[n, : len(sequence)] = 1
    return torch.from_numpy(ids), torch.from_numpy(mask)


class Stream(IterableDataset[list[Batch]]):
    """Batches for ever: the pairs in two passes, the shorter and the longer, then the stances."""

    def __init__(
        self, make_draw: Callable[[int], Draw], texts: Texts, mixture: Mixture, *, seed: int
    ) -> None:
        self._make_draw, self._texts = make_draw, texts
        self._mixture, self._seed = mixture, seed

    def __iter__(self) -> Iterator[list[Batch]]:
        worker = get_worker_info()
        draw = self._make_draw(self._seed * 1000 + (worker.id if worker else 0))
        while True:
            pairs = sorted(draw.pairs(self._mixture), key=lambda r: sum(map(len, r.texts)))
            cut = 2 * len(pairs) // 3
            yield [
                self._texts.pairs(pairs[:cut]),
                self._texts.pairs(pairs[cut:]),
                self._texts.stances(draw.stances(self._mixture)),
            ]
