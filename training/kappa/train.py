"""Trains a scorer on drawn rows: on their labels, and on what a teacher says of them.

    python -m training.kappa.train --rows rows.jsonl --taught runs/teacher/taught.npy \\
        --checkpoint MPNET --layers 10 [--shipped model.onnx] --out runs/model

All tasks are learnt at once. Pair: question and two texts, do they conflict? Stance: question,
answer options and a sentence, which option does it speak for, if any? Answer: does a sentence
answer the question at all? A target is half label, half teacher; a row without a label is learnt
from the teacher alone. Writes weights and report.json under --out. Seeds are fixed; a GPU is used
where there is one. A run too long for one sitting is ended with --pause-s and taken up again by
the same command with --resume.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from training.kappa.batches import Batch, Stream, Texts, length_of
from training.kappa.model import Scorer, load_backbone, thinned
from training.kappa.report import brief, measure
from training.kappa.rows import Row, load_rows
from training.kappa.shipped import load_shipped
from training.kappa.tasks import MAX_OPTIONS, AnswerRow, PairRow, StanceRow

from gcmem.judge.local.cross_encoder import TOKENIZER

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STARTED = time.perf_counter()
ROWS = 512
"""How many rows are judged at a time."""


def logits(model: Scorer, batch: Batch) -> torch.Tensor:
    """Returns a logit a row, or for stances a row of logits: the options, and none."""
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        pair, answer, none, option = model(batch.ids, batch.mask)
    if batch.options is None:
        return (pair if batch.task == "pair" else answer).float()
    chosen = option.float().gather(1, batch.options)
    chosen = chosen.masked_fill(batch.options == 0, -1e4)
    return torch.cat([chosen, none.float()[:, None]], dim=1)


def loss_of(model: Scorer, batches: list[Batch]) -> torch.Tensor:
    """Returns the loss over all tasks."""
    total = sum(len(batch.ids) for batch in batches)
    loss = torch.zeros((), device=DEVICE)
    for batch in batches:
        said = logits(model, batch)
        one = cross_entropy if batch.task == "stance" else bce
        loss = loss + one(said, batch.targets) * (len(batch.ids) / total)
    return loss


@torch.no_grad()
@torch.compiler.set_stance("force_eager")
def judge(model: Scorer, texts: Texts, rows: Sequence[Row]) -> np.ndarray:
    """Returns a row of logits for each row, as `training.kappa.report` reads them."""
    out = np.full((len(rows), MAX_OPTIONS + 1), -np.inf, dtype=np.float32)
    order = sorted(range(len(rows)), key=lambda n: length_of(rows[n]))
    for start in range(0, len(rows), ROWS):
        part = order[start : start + ROWS]
        found = logits(model, texts.batch([rows[n] for n in part]).to(DEVICE)).cpu().numpy()
        found = found.reshape(len(part), -1)
        out[part, : found.shape[1]] = found
    return out


class Run:
    """A model in training; the learning rate falls to nothing at the last step or second."""

    def __init__(self, model: Scorer, args: argparse.Namespace) -> None:
        self.model, self.args = model, args
        self.optimiser = torch.optim.AdamW(
            model.parameters(), lr=args.lr, weight_decay=0.01, fused=DEVICE == "cuda"
        )
        self.step, self.spent_s = 0, 0.0
        self.pausing = args.out / "paused.pt"
        if args.resume:
            self.load_state(torch.load(self.pausing, map_location=DEVICE))

    @property
    def done(self) -> float:
        """How much of the run is behind us, from 0 to 1."""
        spent_s = self.spent_s + time.perf_counter() - STARTED
        return max(self.step / self.args.steps, spent_s / self.args.limit_s)

    def train(self, stream: Stream, watch: Callable[[], None]) -> bool:
        """Runs the loop, and says whether it came to its end or was paused."""
        workers = self.args.workers
        loader = DataLoader(
            stream, batch_size=None, num_workers=workers, prefetch_factor=8 if workers else None
        )
        for cpu_batches in loader:
            if self.done >= 1:
                break
            if time.perf_counter() - STARTED > self.args.pause_s:
                torch.save(self.state(), self.pausing)
                print(f"paused at step {self.step}, {self.done:.0%}", flush=True)
                return False
            loss = self.learn([batch.to(DEVICE) for batch in cpu_batches])
            if self.step % 200 == 0:
                print(f"step {self.step} loss {loss.item():.4f} {self.done:.0%}", flush=True)
            if self.step % 1000 == 999:
                watch()
            self.step += 1
        return True

    def learn(self, batches: list[Batch]) -> torch.Tensor:
        """Takes one step, and returns its loss."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.args.lr * min((self.done + 1e-3) / 0.06, 1 - self.done)
        loss = loss_of(self.model, batches)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        return loss.detach()

    def state(self) -> dict[str, Any]:
        """Returns what a later process needs to go on."""
        return {
            "step": self.step,
            "spent_s": self.spent_s + time.perf_counter() - STARTED,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Goes on from what `state` returned."""
        self.step, self.spent_s = state["step"], state["spent_s"]
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])


def build(checkpoint: Path, layers: int | None, *, empty: bool = False) -> Scorer:
    """Returns a scorer that has learnt nothing yet; `empty`: nor has its backbone."""
    backbone = load_backbone(checkpoint, empty=empty)
    return Scorer(thinned(backbone, layers) if layers else backbone)


def load_scorer(run: Path, *, checkpoint: Path) -> Scorer:
    """Returns the scorer of a finished run; `checkpoint` is where its backbone's shape is now."""
    layers = json.loads((run / "report.json").read_text())["args"]["layers"]
    model = build(checkpoint, layers, empty=True)
    model.load_state_dict(torch.load(run / "scorer.pt", map_location="cpu"))
    return model.float()


def main() -> None:
    """Reads the arguments, trains, measures and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=Path, required=True, help="of training.kappa.rows")
    parser.add_argument("--taught", type=Path, help="of training.kappa.teach")
    parser.add_argument("--checkpoint", type=Path, required=True, help="what it starts from")
    parser.add_argument("--layers", type=int, help="how many of its layers, all unless said")
    parser.add_argument("--shipped", type=Path, help="go on from this exported scorer")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--limit-s", type=float, default=1e9, help="end then, whatever the step")
    parser.add_argument("--pause-s", type=float, default=1e9, help="end this sitting then")
    parser.add_argument("--resume", action="store_true", help="take a paused run up again")
    parser.add_argument("--pairs-only", action="store_true", help="leave the other tasks out")
    parser.add_argument("--lr", type=float, default=5e-5, help="2e-4 suits MiniLM")
    parser.add_argument("--compile", action="store_true", help="faster after a slow start")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="dev", choices=["dev", "test"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    model = build(args.checkpoint, args.layers, empty=args.shipped is not None)
    if args.shipped:
        load_shipped(model, args.shipped)
    model.to(DEVICE).train()
    if args.compile:
        model.compile(dynamic=True)
    run = Run(model, args)
    texts = Texts(Tokenizer.from_file(str(TOKENIZER)))
    rows = load_rows(args.rows)
    texts.read(row for row, _ in rows)
    taught = np.load(args.taught) if args.taught else None
    if taught is not None and len(taught) != len(rows):
        parser.error(f"{args.taught} is about {len(taught)} rows, {args.rows} has {len(rows)}")
    tasks = (PairRow,) if args.pairs_only else (PairRow, StanceRow, AnswerRow)
    seed = args.seed + run.step  # a sitting draws other batches than the one before it
    stream = Stream(rows, taught, texts, seed=seed, tasks=tasks)
    judging = functools.partial(judge, model, texts)

    def watch() -> None:
        model.eval()
        print(brief(judging, args.part), flush=True)
        model.train()

    if not run.train(stream, watch):
        return
    model.eval()
    torch.save({k: v.half() for k, v in model.state_dict().items()}, args.out / "scorer.pt")
    report = {"args": vars(args), "steps": run.step, **measure(judging, args.part)}
    (args.out / "report.json").write_text(json.dumps(report, indent=1, default=str))
    print(json.dumps(report, indent=1, default=str))


if __name__ == "__main__":
    main()
