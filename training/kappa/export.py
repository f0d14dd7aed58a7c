"""Ships a trained scorer and its screen: ONNX, 8 bits, calibrated.

    python -m training.kappa.export --run DIR --checkpoint DIR --screen DIR --screen-checkpoint DIR

A model that is not named stays as it is; without any, those that are there are calibrated anew.

Writes src/gcmem/models/kappa: model.onnx, screen.onnx, config.json (calibration and thresholds,
all chosen on the dev part with the 8-bit models) and test_pairs.jsonl (the held-out pairs that
`gcmem qualify` judges). The test part is only written, never looked at here.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from training.kappa.batches import MAX_TOKENS, Texts
from training.kappa.data import (
    CONTRASTS,
    Family,
    Pair,
    behavioural_pairs,
    fact_pairs,
    held_out,
    load_contrasts,
    load_facts,
    load_families,
    seen,
    unrelated_updates,
)
from training.kappa.metrics import at_threshold, recall_at_precision
from training.kappa.notebooks import load_notebooks, notebook_pairs
from training.kappa.report import pair_row, stance_rows
from training.kappa.train import load_scorer
from training.outliers import set_apart
from training.quantise import quantise

from gcmem.judge.local.cross_encoder import END, START, TOKENIZER, CrossEncoder, pair_rows
from gcmem.judge.recipe import SHIPPED

TARGET = Path(__file__).parents[2] / "src" / "gcmem" / "models" / "kappa"
NAME, VERSION = "gcmem-kappa", 9
FITTED = ("explicit", "lookalikes", "unrelated", "plain")
MOST_CONTRASTS = 250
OUTPUTS = ("pair", "answer", "none", "option")
THRESHOLD, DOUBTFUL_BELOW = 0.27, 0.7
"""From where on a pair is a conflict; up to where it is read again, without the question.

Chosen on dev.

F1 is nearly the same from 0.25 to 0.4. This is where nine of ten explicit updates are seen with
room to spare, and no kind of look-alike is taken for one in more than 4 % of the cases.
"""
SCREENED = 0.004
"""The share of the conflicts seen by both together that the screen may keep from the model."""
TYPICAL = 60
"""How many pairs, and how many stances, show which values of the model are large."""
AGREED = 0.98
"""How often both together must confirm the screen where it decides for a conflict alone."""


class PairOnly(nn.Module):
    """A scorer without its other heads."""

    def __init__(self, scorer: nn.Module) -> None:
        super().__init__()
        self.scorer = scorer

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.scorer(input_ids, attention_mask)[0]


def export_onnx(model: nn.Module, target: Path, *, outputs: tuple[str, ...]) -> None:
    """Writes the 8-bit model."""
    sample = torch.tensor([[START, 2054, END, 2003, END, 2008, END]])
    axes = {name: {0: "batch", 1: "tokens"} for name in ("input_ids", "attention_mask", "option")}
    axes |= {name: {0: "batch"} for name in ("pair", "answer", "none")}
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "fp32.onnx"
        torch.onnx.export(
            model.eval(),
            (sample, torch.ones_like(sample)),
            str(full),
            input_names=["input_ids", "attention_mask"],
            output_names=list(outputs),
            dynamic_axes={n: a for n, a in axes.items() if n in (*outputs, *list(axes)[:2])},
            opset_version=17,
            dynamo=False,
        )
        quantise(full, target, in_blocks=False)


def read_typical(model: nn.Module, families: list[Family]) -> None:
    """Has a scorer read some pairs and stances of the training part, one at a time: no padding."""
    rng = random.Random(0)
    own = seen(families, "train")
    texts = Texts(Tokenizer.from_file(str(TOKENIZER)))
    pairs = rng.sample([pair_row(p) for f in own for p in f.pairs], TYPICAL)
    for row in pairs + rng.sample(stance_rows(own), TYPICAL):
        batch = texts.batch([row])
        model.eval()(batch.ids, batch.mask)


def logits_of(path: Path, pairs: list[Pair]) -> np.ndarray:
    """Returns the logits of an exported model, uncalibrated."""
    model = CrossEncoder(path)
    rows = [pair_rows(p.question, [(p.older, p.newer)], max_tokens=MAX_TOKENS)[0] for p in pairs]
    with ThreadPoolExecutor(2) as pool:
        return np.array(list(pool.map(lambda row: float(model.run(row, ["pair"])[0]), rows)))


def fitted(labels: np.ndarray, *logits: np.ndarray) -> list[float]:
    """Fits weights of the logits and a bias, so that their sum is calibrated."""
    columns = np.stack([*logits, np.ones(len(labels))], axis=1)
    weights = torch.zeros(columns.shape[1], requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200)
    x, y = torch.from_numpy(columns).float(), torch.from_numpy(labels).float()

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ weights, y)
        loss.backward()
        return loss

    optimiser.step(closure)
    return [round(weight, 4) for weight in weights.detach().tolist()]


def _scores(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits))


def calibrate(target: Path, pairs: list[Pair]) -> dict[str, Any]:
    """Returns what LocalClassifier reads beside the models, fitted on dev pairs."""
    # Not on the closest look-alikes, those of contrasts and notebooks, of which nobody knows how
    # often they come up.
    fit = np.array([p.category.startswith(FITTED) for p in pairs])
    labels = np.array([p.conflict for p in pairs])
    looks = logits_of(target / "model.onnx", pairs)
    glances = logits_of(target / "screen.onnx", pairs)
    model, screen, bias = fitted(labels[fit], looks[fit], glances[fit])
    logits = model * looks + screen * glances + bias
    scores = _scores(logits)
    # What is taken for a conflict, and not surely, is read again without the question.
    doubtful = (scores >= THRESHOLD) & (scores < DOUBTFUL_BELOW)
    again = [n for n, p in enumerate(pairs) if p.question and doubtful[n]]
    bare = [replace(pairs[n], question="") for n in again]
    second = model * logits_of(target / "model.onnx", bare)
    second += screen * logits_of(target / "screen.onnx", bare) + bias
    scores[again] = _scores((logits[again] + second) / 2)
    print("dev", at_threshold(labels[fit], scores[fit], THRESHOLD))
    own_scale, own_bias = fitted(labels[fit], glances[fit])
    alone = _scores(own_scale * glances + own_bias)
    below = float(np.quantile(alone[fit & labels & (scores >= THRESHOLD)], SCREENED))
    stopped = np.mean(alone[fit & ~labels] < below)
    print(f"screen below {below:.4f}: {stopped:.1%} of the others stop")
    # Contrasts and notebooks have the closest look-alikes: here they count.
    _, above = recall_at_precision(scores >= THRESHOLD, alone, AGREED)
    accepted = np.mean(alone[labels] >= above)
    print(f"screen above {above:.4f}: {accepted:.1%} of the conflicts need no second look")
    return {
        "name": NAME,
        "version": VERSION,
        "max_tokens": MAX_TOKENS,
        "threshold": THRESHOLD,
        "doubtful_below": DOUBTFUL_BELOW,
        "pair": {"model": model, "screen": screen, "bias": bias},
        "screen": {
            "scale": own_scale,
            "bias": own_bias,
            "below": round(below, 5),
            "above": round(above, 5),
        },
        # Gate, focus and chain are not trained: they go on as they were tuned.
        "oracle": json.loads((SHIPPED / "config.json").read_text("utf-8"))["oracle"],
    }


def evaluation_pairs(families: list[Family], part: str) -> list[Pair]:
    """Returns the pairs that a part is measured on, of every kind."""
    new, old = held_out(families, part), seen(families, part)
    explicit = [p for f in (*new, *old) for p in f.pairs]
    explicit += load_contrasts(part) + fact_pairs(load_facts(part), seed=0)
    explicit += notebook_pairs(load_notebooks(part), seed=0)
    behavioural = behavioural_pairs(new, per_family=4, seed=3)
    drawn = behavioural_pairs(old, per_family=3, seed=4)
    unrelated = [p for p in drawn if p.category == "unrelated/chat"]
    updates = unrelated_updates([*new, *old], count=1000, seed=5)
    return explicit + behavioural + unrelated + updates


def fewer(pairs: list[Pair]) -> list[Pair]:
    """Leaves contrasts out, so that qualifying an oracle takes minutes."""
    rng = random.Random(0)
    kept: set[str] = set()
    for kind in CONTRASTS:
        groups = sorted({p.group for p in pairs if p.category.startswith(kind)})
        kept.update(rng.sample(groups, min(len(groups), MOST_CONTRASTS)))
    return [p for p in pairs if not p.category.startswith(tuple(CONTRASTS)) or p.group in kept]


def write_pairs(path: Path, pairs: list[Pair]) -> None:
    """Writes pairs in the form that `gcmem qualify` reads, in any order."""
    random.Random(0).shuffle(pairs)
    with path.open("w", encoding="utf-8") as file:
        for p in pairs:
            row = {
                "question": p.question or None,
                "older": p.older,
                "newer": p.newer,
                "conflict": p.conflict,
                "category": p.category,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def main() -> None:
    """Exports, calibrates on dev and writes the test pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, help="a run of training.kappa.train")
    parser.add_argument("--checkpoint", type=Path, help="what it was made of")
    parser.add_argument("--screen", type=Path, help="the run of the screen")
    parser.add_argument("--screen-checkpoint", type=Path)
    parser.add_argument("--target", type=Path, default=TARGET)
    args = parser.parse_args()
    args.target.mkdir(parents=True, exist_ok=True)
    families = load_families()
    if args.run:
        model = load_scorer(args.run, checkpoint=args.checkpoint)
        set_apart(model.backbone, partial(read_typical, model, families))
        export_onnx(model, args.target / "model.onnx", outputs=OUTPUTS)
    if args.screen:
        screen = load_scorer(args.screen, checkpoint=args.screen_checkpoint)
        # Fewer layers, fewer large values: nothing needs to be set apart here.
        export_onnx(PairOnly(screen), args.target / "screen.onnx", outputs=OUTPUTS[:1])
    kinds = (*FITTED, *CONTRASTS, "clear", "facts", "notebook")
    dev = [p for p in evaluation_pairs(families, "dev") if p.category.startswith(kinds)]
    config = calibrate(args.target, dev)
    (args.target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write_pairs(args.target / "test_pairs.jsonl", fewer(evaluation_pairs(families, "test")))


if __name__ == "__main__":
    main()
