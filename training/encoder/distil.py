"""Teaches a small encoder to rank as a large one does.

    python -m training.encoder.distil --checkpoint MINILM --data DIR --out DIR

DIR holds texts.jsonl and pairs.jsonl (`training.encoder.texts`) and vectors.npy, the teacher's
(`training.encoder.teacher`). A step draws questions, for each a text that answers it and two that
the teacher ranks high, and other texts. The student's scores of every question with every text, and
of the texts among each other, follow the teacher's; a text that answers a question is pulled to it.
Writes weights.pt. Runs on a CPU: two cores with bfloat16 make about 150 texts a second.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax
from training.encoder.export import SentenceEncoder
from training.kappa.batches import padded
from training.kappa.model import load_backbone

from gcmem.judge.local.cross_encoder import TOKENIZER

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MAX_TOKENS = 128
TEACHER_TEMPERATURE = 0.03
STUDENT_TEMPERATURE = 0.05
QUESTIONS, OTHERS = 96, 96
RANKED_HIGH = 40
"""A question's hard texts are drawn from this many that the teacher ranks highest."""
ANSWERS_WEIGHT, TEXTS_WEIGHT = 0.3, 0.5
BLOCKS = 8


class Lessons:
    """Texts as tokens, the teacher's vectors, and which texts answer which question."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        lines = [json.loads(line) for line in (folder / "texts.jsonl").read_text().splitlines()]
        tokenizer = Tokenizer.from_file(str(TOKENIZER))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        self._ids = [e.ids for e in tokenizer.encode_batch([line["text"] for line in lines])]
        vectors = torch.from_numpy(np.load(folder / "vectors.npy"))
        self.vectors = vectors.float()
        self._documents = [n for n, line in enumerate(lines) if line["kind"] == "document"]
        pairs = map(json.loads, (folder / "pairs.jsonl").read_text().splitlines())
        self._answers: dict[int, list[int]] = {}
        for pair in pairs:
            self._answers.setdefault(pair["question"], []).extend(pair["documents"])
        self._questions = sorted(self._answers)
        self._high = self._ranked_high()
        self._rng = random.Random(seed)

    def _ranked_high(self) -> dict[int, list[int]]:
        documents = torch.tensor(self._documents)
        found: dict[int, list[int]] = {}
        for start in range(0, len(self._questions), 512):
            block = self._questions[start : start + 512]
            scores = self.vectors[block] @ self.vectors[documents].T
            best = documents[scores.topk(RANKED_HIGH, dim=1).indices]
            found |= dict(zip(block, best.tolist(), strict=True))
        return found

    def draw(self) -> tuple[list[int], list[int]]:
        """Returns questions and texts; the first texts answer the questions, in their order."""
        rng = self._rng
        questions = rng.sample(self._questions, QUESTIONS)
        texts = [rng.choice(self._answers[question]) for question in questions]
        for question in questions:
            texts += rng.sample(self._high[question], 2)
        texts += rng.sample(self._documents, OTHERS)
        return questions, texts

    def tokens(self, numbers: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns ids and mask."""
        ids, mask = padded([self._ids[number] for number in numbers])
        return ids.to(DEVICE), mask.to(DEVICE)

    def answers(self, questions: Sequence[int], texts: Sequence[int]) -> torch.Tensor:
        """Returns which texts are known to answer which questions."""
        known = [set(self._answers[question]) for question in questions]
        return torch.tensor([[text in answers for text in texts] for answers in known])


def encode(model: SentenceEncoder, lessons: Lessons, numbers: Sequence[int]) -> torch.Tensor:
    """Encodes texts in blocks of like length, so that little is padding."""
    order = sorted(range(len(numbers)), key=lambda n: len(lessons._ids[numbers[n]]))
    size = -(-len(order) // BLOCKS)
    blocks = [order[start : start + size] for start in range(0, len(order), size)]
    parts = []
    for block in blocks:
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            parts.append(model(*lessons.tokens([numbers[n] for n in block])).float())
    places = torch.tensor([n for block in blocks for n in block]).argsort()
    return torch.cat(parts)[places]


def divergence(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Returns how far the student's ranking of each row is from the teacher's."""
    return kl_div(
        log_softmax(student / STUDENT_TEMPERATURE, dim=1),
        softmax(teacher / TEACHER_TEMPERATURE, dim=1),
        reduction="batchmean",
    )


def loss_of(model: SentenceEncoder, lessons: Lessons) -> torch.Tensor:
    """Draws a batch and returns its loss."""
    questions, texts = lessons.draw()
    vectors = encode(model, lessons, questions + texts)
    asked, said = vectors[: len(questions)], vectors[len(questions) :]
    told_asked, told_said = lessons.vectors[questions], lessons.vectors[texts]
    scores = asked @ said.T
    loss = divergence(scores, told_asked @ told_said.T)
    # A text that was drawn twice is the same text: it must not be compared with itself.
    same = torch.tensor(texts)[:, None] == torch.tensor(texts)[None]
    among, told_among = said @ said.T, told_said @ told_said.T
    among, told_among = among.masked_fill(same, -1.0), told_among.masked_fill(same, -1.0)
    loss = loss + TEXTS_WEIGHT * divergence(among, told_among)
    also = lessons.answers(questions, texts)
    own = torch.eye(len(questions), len(texts), dtype=torch.bool)
    apart = scores.masked_fill(also & ~own, -1.0) / STUDENT_TEMPERATURE
    return loss + ANSWERS_WEIGHT * cross_entropy(apart, torch.arange(len(questions)))


def main() -> None:
    """Reads the arguments, trains and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--weights", type=Path, help="weights.pt to go on from")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit-s", type=float, required=True)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    lessons = Lessons(args.data, seed=args.seed)
    # Without dropout: the teacher's scores leave little to overfit, and it costs a third.
    model = SentenceEncoder(load_backbone(args.checkpoint)).to(DEVICE).eval()
    if args.weights:
        model.transformer.load_state_dict(torch.load(args.weights))
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    started, done, losses = time.perf_counter(), 0.0, list[float]()
    while (done := (time.perf_counter() - started) / args.limit_s) < 1:
        for group in optimiser.param_groups:
            group["lr"] = args.lr * min((done + 1e-3) / 0.06, 1 - done)
        loss = loss_of(model, lessons)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
        if len(losses) % 20 == 0:
            print(f"{len(losses)} steps, {done:.0%}, loss {np.mean(losses[-20:]):.4f}", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.save(model.transformer.state_dict(), args.out / "weights.pt")


if __name__ == "__main__":
    main()
