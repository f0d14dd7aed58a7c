"""Ships a trained scorer: ONNX, 8 bits, calibrated.

    python -m training.kappa.export --run DIR --name deep --checkpoint DIR

Writes src/gcmem/models/kappa: model.onnx, config.json (calibration and threshold, both chosen on
the dev part with the int8 model) and test_pairs.jsonl (the held-out pairs that `gcmem qualify`
judges). The test part is only written, never looked at here.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from training.kappa.data import (
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
from training.kappa.train import load_scorer
from training.quantise import quantise

from gcmem.conflict.local import END, START, LocalClassifier

TARGET = Path(__file__).parents[2] / "src" / "gcmem" / "models" / "kappa"
NAME, VERSION = "gcmem-kappa", 2
OUTPUTS = ("pair", "state", "none", "option")
PRECISION = 0.95


def export_onnx(run: Path, name: str, checkpoint: Path, target: Path) -> None:
    """Writes the 8-bit model."""
    model = load_scorer(run, name, checkpoint=checkpoint).eval()
    sample = torch.tensor([[START, 2054, END, 2003, END, 2008, END]])
    rows = {0: "batch"}
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "fp32.onnx"
        torch.onnx.export(
            model,
            (sample, torch.ones_like(sample)),
            str(full),
            input_names=["input_ids", "attention_mask"],
            output_names=list(OUTPUTS),
            dynamic_axes={
                "input_ids": {0: "batch", 1: "tokens"},
                "attention_mask": {0: "batch", 1: "tokens"},
                **dict.fromkeys(OUTPUTS, rows),
                "option": {0: "batch", 1: "tokens"},
            },
            opset_version=17,
            dynamo=False,
        )
        quantise(full, target / "model.onnx")


def calibrate(target: Path, pairs: list[Pair]) -> dict[str, float]:
    """Fits scale and bias of the logit on dev pairs, and chooses the threshold there."""
    write_config(target, scale=1.0, bias=0.0, threshold=0.5)
    raw = np.array(scores(pairs))
    logits = np.log(raw.clip(1e-7, 1 - 1e-7) / (1 - raw.clip(1e-7, 1 - 1e-7)))
    labels = np.array([p.conflict for p in pairs])
    scale, bias = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.LBFGS([scale, bias], max_iter=200)
    x, y = torch.from_numpy(logits).float(), torch.from_numpy(labels).float()

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scale * x + bias, y)
        loss.backward()
        return loss

    optimiser.step(closure)
    fitted = {"scale": round(scale.item(), 4), "bias": round(bias.item(), 4)}
    calibrated = 1 / (1 + np.exp(-(fitted["scale"] * logits + fitted["bias"])))
    recall, threshold = recall_at_precision(labels, calibrated, PRECISION)
    write_config(target, **fitted, threshold=round(max(threshold, 0.5), 3))
    print("dev: recall at precision", PRECISION, round(recall, 4), "threshold", threshold)
    print("dev at threshold", at_threshold(labels, calibrated, max(threshold, 0.5)))
    return fitted


def write_config(target: Path, *, scale: float, bias: float, threshold: float) -> None:
    """Writes what LocalClassifier reads beside the model."""
    config = {
        "name": NAME,
        "version": VERSION,
        "max_tokens": 128,
        "scale": scale,
        "bias": bias,
        "threshold": threshold,
    }
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def scores(pairs: list[Pair]) -> list[float]:
    """Scores pairs with the exported model."""
    classifier = LocalClassifier()
    found: dict[str, list[int]] = {}
    for number, pair in enumerate(pairs):
        found.setdefault(pair.question, []).append(number)
    out = [0.0] * len(pairs)
    for question, rows in found.items():
        texts = [(pairs[n].older, pairs[n].newer) for n in rows]
        for n, score in zip(rows, classifier.score(question, texts), strict=True):
            out[n] = score
    return out


def evaluation_pairs(families: list[Family], part: str) -> list[Pair]:
    """Returns what a part is measured on: explicit, look-alike, unrelated and behavioural pairs."""
    new, old = held_out(families, part), seen(families, part)
    explicit = [p for f in (*new, *old) for p in f.pairs]
    explicit += load_contrasts(part) + fact_pairs(load_facts(part), seed=0)
    behavioural = behavioural_pairs(new, per_family=25, seed=3)
    drawn = behavioural_pairs(old, per_family=3, seed=4)
    unrelated = [p for p in drawn if p.category == "unrelated/chat"]
    updates = unrelated_updates([*new, *old], count=1000, seed=5)
    return explicit + behavioural + unrelated + updates


def main() -> None:
    """Exports, calibrates on dev and writes the test pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, required=True, help="a run of training.kappa.train")
    parser.add_argument("--name", default="deep", help="which scorer of the run")
    parser.add_argument("--checkpoint", type=Path, required=True, help="what it was made of")
    parser.add_argument("--target", type=Path, default=TARGET)
    args = parser.parse_args()
    args.target.mkdir(parents=True, exist_ok=True)
    export_onnx(args.run, args.name, args.checkpoint, args.target)
    families = load_families()
    # Not the contrasts: how many look-alikes stand beside a conflict there is arbitrary.
    kinds = ("explicit", "lookalikes", "unrelated")
    dev = [p for p in evaluation_pairs(families, "dev") if p.category.startswith(kinds)]
    calibrate(args.target, dev)
    test = evaluation_pairs(families, "test")
    random.Random(0).shuffle(test)
    with (args.target / "test_pairs.jsonl").open("w", encoding="utf-8") as file:
        for p in test:
            row = {
                "question": p.question or None,
                "older": p.older,
                "newer": p.newer,
                "conflict": p.conflict,
                "category": p.category,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
