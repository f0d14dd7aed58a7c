"""Lays rows out as tensors, in worker processes: tokenising is what a GPU would wait for."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.utils.data import IterableDataset, get_worker_info
from training.kappa.rows import Row, labelled
from training.kappa.tasks import MAX_OPTIONS, UNKNOWN, AnswerRow, PairRow, StanceRow

from gcmem.judge.local.cross_encoder import END, PAD, SPECIAL, layout

MAX_TOKENS = 128
Task = Literal["pair", "stance", "answer"]
GAPS = (0.0, 0.1, 0.2)
"""How large a share of a sentence's tokens is left out."""
SIZES: dict[type[Row], tuple[int, int]] = {
    PairRow: (640, 2),
    StanceRow: (320, 2),
    AnswerRow: (64, 1),
}
"""How many rows of a task a step has, and in how many passes they are read."""


@dataclass
class Batch:
    """Rows of one task; those of stances have `options`: where each closes, 0 for none.

    `targets` are probabilities: one a row, or for stances those of the options and of none.
    """

    task: Task
    ids: torch.Tensor
    mask: torch.Tensor
    targets: torch.Tensor | None = None
    options: torch.Tensor | None = None

    def to(self, device: str) -> Batch:
        """Returns the batch on a device."""
        tensors = (self.ids, self.mask, self.targets, self.options)
        return Batch(self.task, *(None if t is None else t.to(device) for t in tensors))


class Texts:
    """Tokenises every text once, in BERT's vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._ids: dict[str, list[int]] = {}

    def read(self, rows: Iterable[Row]) -> None:
        """Tokenises what rows say, so that processes forked later need not."""
        unread = sorted({t for row in rows for t in texts_of(row) if t not in self._ids})
        for text, found in zip(
            unread, self._tokenizer.encode_batch(unread, add_special_tokens=False), strict=True
        ):
            self._ids[text] = [i for i in found.ids if i not in SPECIAL]

    def _row(self, row: Row) -> list[int]:
        return layout([self._ids[text] for text in texts_of(row)], max_tokens=MAX_TOKENS)

    def batch(self, rows: Sequence[Row], *, gaps: random.Random | None = None) -> Batch:
        """Returns rows of one task as a batch, without targets.

        With `gaps`, the sentences of stances lose some of their words: one that is never read
        twice alike is harder to learn by heart.
        """
        self.read(rows)
        sequences = [self._row(row) for row in rows]
        if not isinstance(rows[0], StanceRow):
            return Batch("pair" if isinstance(rows[0], PairRow) else "answer", *padded(sequences))
        if gaps is not None:
            sequences = [_with_gaps(sequence, gaps) for sequence in sequences]
        closes = np.zeros((len(rows), MAX_OPTIONS), dtype=np.int64)
        for n, (row, sequence) in enumerate(zip(rows, sequences, strict=True)):
            ends = [at for at, token in enumerate(sequence) if token == END]
            closes[n, : len(row.options)] = ends[1 : 1 + len(row.options)]
        return Batch("stance", *padded(sequences), options=torch.from_numpy(closes))


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


def target_of(row: Row, taught: np.ndarray | None) -> np.ndarray:
    """Returns what a scorer should say: half the label, half the teacher, or either alone."""
    if isinstance(row, StanceRow):
        label = np.zeros(MAX_OPTIONS + 1, dtype=np.float32)
        if row.label != UNKNOWN:
            label[MAX_OPTIONS if row.label is None else row.label] = 1.0
        sure = None if taught is None else np.exp(taught - taught.max())
        sure = None if sure is None else sure / sure.sum()
    else:
        label = np.array([row.label or 0.0], dtype=np.float32)
        sure = None if taught is None else 1 / (1 + np.exp(-taught[:1]))
    if sure is None:
        return label
    return ((label + sure) / 2 if labelled(row) else sure).astype(np.float32)


class Stream(IterableDataset[list[Batch]]):
    """Batches for ever: each task's rows in passes, from the shortest to the longest."""

    def __init__(
        self,
        rows: Sequence[tuple[Row, int]],
        taught: np.ndarray | None,
        texts: Texts,
        *,
        seed: int,
        tasks: Sequence[type[Row]] = (PairRow, StanceRow, AnswerRow),
    ) -> None:
        self._texts, self._seed = texts, seed
        self._pools = []
        for kind in tasks:
            chosen = [
                (row, count, None if taught is None else taught[n])
                for n, (row, count) in enumerate(rows)
                if isinstance(row, kind) and (taught is not None or labelled(row))
            ]
            targets = [target_of(row, logits) for row, _, logits in chosen]
            pool = [(row, target) for (row, _, _), target in zip(chosen, targets, strict=True)]
            self._pools.append((kind, pool, list(accumulate(count for _, count, _ in chosen))))

    def __iter__(self) -> Iterator[list[Batch]]:
        worker = get_worker_info()
        rng = random.Random(self._seed * 1000 + (worker.id if worker else 0))
        while True:
            batches = []
            for kind, pool, counts in self._pools:
                size, passes = SIZES[kind]
                drawn = rng.choices(pool, cum_weights=counts, k=size)
                drawn.sort(key=lambda item: length_of(item[0]))
                step = -(-size // passes)
                for start in range(0, size, step):
                    part = drawn[start : start + step]
                    batch = self._texts.batch([row for row, _ in part], gaps=rng)
                    targets = torch.from_numpy(np.stack([target for _, target in part]))
                    batch.targets = targets if kind is StanceRow else targets[:, 0]
                    batches.append(batch)
            yield batches


def texts_of(row: Row) -> tuple[str, ...]:
    """Returns what a scorer reads of a row, in order."""
    if isinstance(row, PairRow):
        return row.texts
    options = row.options if isinstance(row, StanceRow) else ()
    return (row.question, *options, row.sentence)


def length_of(row: Row) -> int:
    """Returns about how long a row is."""
    return sum(map(len, texts_of(row)))
