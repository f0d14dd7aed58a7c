"""Trains scorers: a teacher on the labels, or students on the labels and a teacher.

    python -m training.kappa.train --checkpoint MPNET --out DIR
    python -m training.kappa.train --teacher DIR --student small=MINILM --student deep=6 --out DIR

A student is a checkpoint of its own, or a number: that many layers of the teacher. Both tasks are
learnt at once. Pair: question and two texts, do they conflict? Stance: question, answer options
and a sentence, which option does it speak for, if any? A student's target is half label, half
teacher; pairs without a label are learnt from the teacher alone. Writes weights and report.json
under --out. Seeds are fixed; a GPU is used where there is one.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import time
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
from training.kappa.report import measure

from gcmem.conflict.local import TOKENIZER

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STARTED = time.perf_counter()


def logits(model: Scorer, batch: Batch) -> torch.Tensor:
    """Returns a row of logits a row: contradiction and other state, or the options and none."""
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        pair, state, none, option = model(batch.ids, batch.mask)
    if batch.options is None:
        return torch.stack([pair, state], dim=1).float()
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
        one = pair_loss if batch.options is None else stance_loss
        loss = loss + one(said, batch, teacher) * (len(batch.labels) / total)
    return loss


def pair_loss(said: torch.Tensor, batch: Batch, teacher: torch.Tensor | None) -> torch.Tensor:
    """Both heads learn every row, but the pair head none whose conflict is only implied."""
    target = batch.labels[:, None].expand(-1, 2)
    if teacher is not None:
        sure = torch.sigmoid(teacher)
        target = torch.where(target < 0, sure, 0.5 * target + 0.5 * sure)
    each = bce(said, target, reduction="none")
    own = (~batch.implied).float()
    return (each[:, 0] * own).sum() / own.sum() + 0.5 * each[:, 1].mean()


def stance_loss(said: torch.Tensor, batch: Batch, teacher: torch.Tensor | None) -> torch.Tensor:
    """The right option, and half of it a teacher's distribution."""
    loss = cross_entropy(said, batch.labels)
    if teacher is None:
        return loss
    return 0.5 * loss + 0.5 * cross_entropy(said, torch.softmax(teacher, 1))


def train(
    models: dict[str, Scorer], teacher: Scorer | None, stream: Stream, args: argparse.Namespace
) -> None:
    """Runs the loop; the learning rate falls to nothing at the last step or second."""
    rates = {name: args.lr if model.mpnet else args.small_lr for name, model in models.items()}
    optimisers = {
        name: torch.optim.AdamW(model.parameters(), lr=rates[name], weight_decay=0.01)
        for name, model in models.items()
    }
    loader = DataLoader(stream, batch_size=None, num_workers=args.workers, prefetch_factor=8)
    for step, cpu_batches in enumerate(loader):
        done = max(step / args.steps, (time.perf_counter() - STARTED) / args.limit_s)
        if done >= 1:
            break
        batches = [batch.to(DEVICE) for batch in cpu_batches]
        with torch.no_grad():
            taught = None if teacher is None else [logits(teacher, b) for b in batches]
        said = []
        for name, model in models.items():
            for group in optimisers[name].param_groups:
                group["lr"] = rates[name] * min((done + 1e-3) / 0.06, 1 - done)
            loss = loss_of(model, batches, taught)
            optimisers[name].zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimisers[name].step()
            if step % 200 == 0:
                said.append(f"{name} {loss.item():.4f}")
        if said:
            print(f"step {step} loss {', '.join(said)} {done:.0%}", flush=True)


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
        return {"checkpoint": str(args.checkpoint), "layers": None}
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
    parser.add_argument("--teacher", type=Path, help="a finished run of this script")
    parser.add_argument("--student", action="append", default=[], metavar="NAME=SOURCE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nli", type=Path)
    parser.add_argument("--nli-limit", type=int, default=150_000)
    parser.add_argument("--statebench", type=Path)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--limit-s", type=float, default=1e9, help="end then, whatever the step")
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
        teacher, models = None, {"teacher": Scorer(load_backbone(args.checkpoint))}
    models = {name: model.to(DEVICE).train() for name, model in models.items()}
    stream = Stream(functools.partial(make_draw, args), texts, mixture, seed=args.seed)
    train(models, teacher, stream, args)
    args.out.mkdir(parents=True, exist_ok=True)
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
