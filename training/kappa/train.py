"""Trains scorers: a teacher on the labels, or students on the labels and a teacher.

    python -m training.kappa.train --checkpoint MPNET --layers 10 --out DIR
    python -m training.kappa.train --teacher DIR --student screen=MINILM --pairs-only --out DIR

A student is a checkpoint of its own, or a number: that many layers of the teacher. All tasks are
learnt at once. Pair: question and two texts, do they conflict? Stance: question, answer options
and a sentence, which option does it speak for, if any? Answer: does a sentence answer the
question at all? A student's target is half label, half
teacher; pairs without a label are learnt from the teacher alone. Writes weights and report.json
under --out. Seeds are fixed; a GPU is used where there is one. A run too long for one sitting is
ended with --pause-s and taken up again by the same command with --resume.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from training.kappa.batches import Batch, Stream, Texts
from training.kappa.data import (
    load_contrasts,
    load_facts,
    load_families,
    load_nli,
    load_statebench,
    seen,
)
from training.kappa.draw import Draw, Mixture
from training.kappa.model import Scorer, load_backbone, thinned
from training.kappa.report import measure, measure_stances

from gcmem.conflict.cross_encoder import TOKENIZER

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STARTED = time.perf_counter()


def logits(model: Scorer, batch: Batch) -> torch.Tensor:
    """Returns a logit a row, or for stances a row of logits: the options, and none."""
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        pair, answer, none, option = model(batch.ids, batch.mask)
    if batch.options is None:
        return (pair if batch.task == "pair" else answer).float()
    chosen = option.float().gather(1, batch.options)
    chosen = chosen.masked_fill(batch.options == 0, -1e4)
    return torch.cat([chosen, none.float()[:, None]], dim=1)


def loss_of(model: Scorer, batches: list[Batch], taught: list[torch.Tensor] | None) -> torch.Tensor:
    """Returns the loss over both tasks; `taught` are a teacher's logits for the same batches."""
    total = sum(len(batch.labels) for batch in batches)
    loss = torch.zeros((), device=DEVICE)
    for number, batch in enumerate(batches):
        said = logits(model, batch)
        teacher = None if taught is None else taught[number]
        one = stance_loss if batch.task == "stance" else score_loss
        loss = loss + one(said, batch, teacher) * (len(batch.labels) / total)
    return loss


def score_loss(said: torch.Tensor, batch: Batch, teacher: torch.Tensor | None) -> torch.Tensor:
    """The label, and half of it a teacher's score."""
    target = batch.labels
    if teacher is not None:
        sure = torch.sigmoid(teacher)
        target = torch.where(target < 0, sure, 0.5 * target + 0.5 * sure)
    return bce(said, target)


def stance_loss(said: torch.Tensor, batch: Batch, teacher: torch.Tensor | None) -> torch.Tensor:
    """The right option, and half of it a teacher's distribution."""
    loss = cross_entropy(said, batch.labels)
    if teacher is None:
        return loss
    return 0.5 * loss + 0.5 * cross_entropy(said, torch.softmax(teacher, 1))


class Run:
    """Models in training; the learning rate falls to nothing at the last step or second."""

    def __init__(self, models: dict[str, Scorer], args: argparse.Namespace) -> None:
        self.models, self.args = models, args
        self.rates = {n: args.lr if m.mpnet else args.small_lr for n, m in models.items()}
        self.optimisers = {
            name: torch.optim.AdamW(model.parameters(), lr=self.rates[name], weight_decay=0.01)
            for name, model in models.items()
        }
        self.step, self.spent_s = 0, 0.0
        self.pausing = args.out / "paused.pt"
        if args.resume:
            self.load_state(torch.load(self.pausing, map_location=DEVICE))

    @property
    def done(self) -> float:
        """How much of the run is behind us, from 0 to 1."""
        spent_s = self.spent_s + time.perf_counter() - STARTED
        return max(self.step / self.args.steps, spent_s / self.args.limit_s)

    def train(
        self, teacher: Scorer | None, stream: Stream, watch: Callable[[], None] | None = None
    ) -> bool:
        """Runs the loop, and says whether it came to its end or was paused."""
        workers = self.args.workers
        loader = DataLoader(stream, batch_size=None, num_workers=workers, prefetch_factor=8)
        for cpu_batches in loader:
            if self.done >= 1:
                break
            if time.perf_counter() - STARTED > self.args.pause_s:
                torch.save(self.state(), self.pausing)
                print(f"paused at step {self.step}, {self.done:.0%}", flush=True)
                return False
            batches = [batch.to(DEVICE) for batch in cpu_batches]
            with torch.no_grad():
                taught = None if teacher is None else [logits(teacher, b) for b in batches]
            losses = {name: self.learn(name, batches, taught) for name in self.models}
            if self.step % 200 == 0:
                said = ", ".join(f"{name} {loss.item():.4f}" for name, loss in losses.items())
                print(f"step {self.step} loss {said} {self.done:.0%}", flush=True)
            if self.step % 1000 == 999 and watch is not None:
                watch()
            self.step += 1
        return True

    def learn(
        self, name: str, batches: list[Batch], taught: list[torch.Tensor] | None
    ) -> torch.Tensor:
        """Takes one step with one model, and returns its loss."""
        model, optimiser = self.models[name], self.optimisers[name]
        for group in optimiser.param_groups:
            group["lr"] = self.rates[name] * min((self.done + 1e-3) / 0.06, 1 - self.done)
        loss = loss_of(model, batches, taught)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return loss.detach()

    def state(self) -> dict[str, Any]:
        """Returns what a later process needs to go on."""
        return {
            "step": self.step,
            "spent_s": self.spent_s + time.perf_counter() - STARTED,
            "models": {name: model.state_dict() for name, model in self.models.items()},
            "optimisers": {name: each.state_dict() for name, each in self.optimisers.items()},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Goes on from what `state` returned."""
        self.step, self.spent_s = state["step"], state["spent_s"]
        for name, model in self.models.items():
            model.load_state_dict(state["models"][name])
            self.optimisers[name].load_state_dict(state["optimisers"][name])


def load_scorer(run: Path, name: str, *, checkpoint: Path | None = None) -> Scorer:
    """Returns a finished scorer of a run; `checkpoint` is where its backbone's shape is now."""
    made = json.loads((run / "report.json").read_text())[name]["made of"]
    backbone = load_backbone(checkpoint or Path(made["checkpoint"]))
    model = Scorer(thinned(backbone, made["layers"]) if made["layers"] else backbone)
    model.load_state_dict(torch.load(run / f"{name}.pt", map_location="cpu"))
    return model.float()


def make_students(args: argparse.Namespace, teacher: Scorer) -> dict[str, Scorer]:
    """Returns the students by name: a checkpoint, or a thinned copy of the teacher."""
    students = {}
    for said in args.student:
        name, _, source = said.partition("=")
        if source.isdigit():
            students[name] = copy.deepcopy(teacher)
            students[name].backbone = thinned(students[name].backbone, int(source))
        else:
            students[name] = Scorer(load_backbone(Path(source)))
    return students


def made_of(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Returns what it takes to build a scorer's shape again."""
    if not args.teacher:
        return {"checkpoint": str(args.checkpoint), "layers": args.layers}
    source = dict(said.split("=", 1) for said in args.student)[name]
    if not source.isdigit():
        return {"checkpoint": source, "layers": None}
    report = json.loads((args.teacher / "report.json").read_text())
    return {"checkpoint": report["teacher"]["made of"]["checkpoint"], "layers": int(source)}


def make_draw(args: argparse.Namespace, seed: int) -> Draw:
    """Reads the training part, in each worker for itself."""
    pools = {"contrasts": load_contrasts("train")}
    if args.nli:
        pools["nli"] = load_nli(args.nli, limit=args.nli_limit, seed=0)
    if args.statebench:
        pools["statebench"] = load_statebench(args.statebench)
    return Draw(seen(load_families(), "train"), pools, load_facts("train"), seed=seed)


def main() -> None:
    """Reads the arguments, trains, measures and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, help="what a teacher starts from")
    parser.add_argument("--layers", type=int, help="how many of its layers, all unless said")
    parser.add_argument("--teacher", type=Path, help="a finished run of this script")
    parser.add_argument("--student", action="append", default=[], metavar="NAME=SOURCE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nli", type=Path)
    parser.add_argument("--nli-limit", type=int, default=150_000)
    parser.add_argument("--statebench", type=Path)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--limit-s", type=float, default=1e9, help="end then, whatever the step")
    parser.add_argument("--pause-s", type=float, default=1e9, help="end this sitting then")
    parser.add_argument("--resume", action="store_true", help="take a paused run up again")
    parser.add_argument("--pairs-only", action="store_true", help="leave the other tasks out")
    parser.add_argument("--lr", type=float, default=5e-5, help="of MPNet models")
    parser.add_argument("--small-lr", type=float, default=2e-4, help="of MiniLM models")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="dev", choices=["dev", "test"])
    args = parser.parse_args()
    if bool(args.checkpoint) == bool(args.teacher):
        parser.error("pass --checkpoint for a teacher, or --teacher with --student")
    torch.manual_seed(args.seed)
    texts = Texts(Tokenizer.from_file(str(TOKENIZER)))
    mixture = Mixture()
    if args.teacher:
        teacher = load_scorer(args.teacher, "teacher").to(DEVICE).eval()
        models = make_students(args, teacher)
        mixture = replace(mixture, unlabelled=96)
    else:
        backbone = load_backbone(args.checkpoint)
        backbone = thinned(backbone, args.layers) if args.layers else backbone
        teacher, models = None, {"teacher": Scorer(backbone)}
    if args.pairs_only:
        mixture = replace(mixture, stances=0, off_topic=0, answers=0)
    models = {name: model.to(DEVICE).train() for name, model in models.items()}
    args.out.mkdir(parents=True, exist_ok=True)
    run = Run(models, args)
    seed = args.seed + run.step  # a sitting draws other batches than the one before it
    stream = Stream(functools.partial(make_draw, args), texts, mixture, seed=seed)

    def watch() -> None:
        for name, model in models.items():
            found = measure_stances(
                functools.partial(logits, model.eval()), texts, args.part, device=DEVICE
            )
            print(name, found, flush=True)
            model.train()

    if not run.train(teacher, stream, None if args.pairs_only else watch):
        return
    report: dict[str, Any] = {"args": vars(args)}
    for name, model in models.items():
        torch.save({k: v.half() for k, v in model.state_dict().items()}, args.out / f"{name}.pt")
        model.eval()
        figures = measure(functools.partial(logits, model), texts, args.part, device=DEVICE)
        report[name] = {"made of": made_of(name, args), **figures}
    (args.out / "report.json").write_text(json.dumps(report, indent=1, default=str))
    print(json.dumps(report, indent=1, default=str))


if __name__ == "__main__":
    main()
