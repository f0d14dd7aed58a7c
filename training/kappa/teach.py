"""Fine-tunes a small language model on the labelled rows, and has it judge all of them.

    python -m training.kappa.teach --model qwen2.5-1.5b.gguf --rows rows.jsonl --out runs/teacher

Writes taught.npy under --out, a row of logits for each row of the file (a pair's and an answer's
logit stand first; a stance has one an option and last that of none), and report.json with the
teacher's figures on dev. A GPU with some 60 GB does it in minutes.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy
from training.kappa.language_model import ANSWER, OPTIONS, PAIR, LanguageModel, judge, shuffled
from training.kappa.report import measure
from training.kappa.rows import Row, labelled, load_rows
from training.kappa.tasks import MAX_OPTIONS, AnswerRow, PairRow, StanceRow

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHARES = {PairRow: 150, StanceRow: 90, AnswerRow: 16}
"""How many rows of each task a step has."""
PASSES = 4
WARM_UP = 0.06


def loss_of(said: torch.Tensor, rows: Sequence[Row]) -> torch.Tensor:
    """Returns the mean loss over rows of any tasks."""
    total = said.new_zeros(())
    stances = [n for n, row in enumerate(rows) if isinstance(row, StanceRow)]
    others = [n for n, row in enumerate(rows) if not isinstance(row, StanceRow)]
    if stances:
        right = [MAX_OPTIONS if rows[n].label is None else rows[n].label for n in stances]
        own = said[stances, OPTIONS:]
        total = total + cross_entropy(own, torch.tensor(right, device=said.device), reduction="sum")
    if others:
        places = [PAIR if isinstance(rows[n], PairRow) else ANSWER for n in others]
        target = said.new_tensor([rows[n].label for n in others])
        total = total + bce(said[others, places], target, reduction="sum")
    return total / len(rows)


def train(model: LanguageModel, rows: Sequence[tuple[Row, int]], args: argparse.Namespace) -> None:
    """Takes steps over the labelled rows until the time is up."""
    rng = random.Random(args.seed)
    pools = {}
    for kind in SHARES:
        own = [(row, count) for row, count in rows if isinstance(row, kind) and labelled(row)]
        pools[kind] = [row for row, _ in own], list(accumulate(count for _, count in own))
    fresh = list(model.head.parameters())
    old = [p for p in model.backbone.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(
        [{"params": old, "rate": args.lr}, {"params": fresh, "rate": args.head_lr}],
        betas=(0.9, 0.98),
        weight_decay=0.01,
        fused=DEVICE == "cuda",
    )
    started, step = time.perf_counter(), 0
    while True:
        done = max(step / args.steps, (time.perf_counter() - started) / args.limit_s)
        if done >= 1:
            return
        for group in optimiser.param_groups:
            group["lr"] = group["rate"] * min((done + 1e-3) / WARM_UP, 1 - done)
        batch = [
            row
            for kind, (pool, counts) in pools.items()
            for row in rng.choices(pool, cum_weights=counts, k=SHARES[kind])
        ]
        texts = [(shuffled(row, rng), row) for row in batch]
        texts.sort(key=lambda item: len(item[0]))
        total = 0.0
        size = -(-len(texts) // PASSES)
        for start in range(0, len(texts), size):
            part = texts[start : start + size]
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                said = model([text for text, _ in part])
            loss = loss_of(said, [row for _, row in part]) * (len(part) / len(texts))
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 50 == 0:
            print(f"step {step} loss {total:.4f} {done:.0%}", flush=True)
        step += 1


def main() -> None:
    """Reads the arguments, trains, measures and judges."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="a Qwen2 model, GGUF")
    parser.add_argument("--layers", type=int, default=22, help="how many of its layers")
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--limit-s", type=float, default=1e9, help="end training then")
    parser.add_argument("--lr", type=float, default=2e-5)
    parser.add_argument("--head-lr", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    rows = load_rows(args.rows)
    model = LanguageModel(args.model, layers=args.layers).to(DEVICE)
    print(f"loaded, {len(rows)} rows", flush=True)
    train(model, rows, args)
    model.eval()
    report = measure(functools.partial(judge, model), "dev")
    (args.out / "report.json").write_text(json.dumps(report, indent=1))
    print(json.dumps(report, indent=1), flush=True)
    # Once is enough here: most of the time goes into this reading.
    np.save(args.out / "taught.npy", judge(model, [row for row, _ in rows], twice=False))


if __name__ == "__main__":
    main()
