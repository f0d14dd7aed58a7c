"""Tunes the sentence encoder so that a question finds the behaviours that answer it.

    python -m training.encoder.train --checkpoint MINILM --out DIR --nli FILE

A question and a sentence that lets one infer its answer share few words, so an encoder trained on
paraphrases ranks the sentence behind small talk. Pairs of question and sentence from the training
part are pulled together, all other sentences of the batch pushed apart, and on public sentences
the vectors are held where they were. Writes weights.pt and report.json.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn.functional import cross_entropy, normalize
from training.kappa.batches import padded
from training.kappa.data import (
    Family,
    held_out,
    load_contrasts,
    load_facts,
    load_families,
    load_nli,
    seen,
)
from training.kappa.metrics import auc
from training.kappa.model import load_backbone

from gcmem.judge.local.cross_encoder import TOKENIZER

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TEMPERATURE = 0.05
MAX_TOKENS = 96
HOLD = 2.0
"""How much staying in place on public sentences counts."""


class Encoder(nn.Module):
    """Mean of the last hidden states, of unit length."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.backbone(input_ids=input_ids, attention_mask=attention_mask)[0].float()
        mask = attention_mask[:, :, None].float()
        return normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)


class Pairs:
    """Draws (question, sentence) pairs of which no two in a batch belong together."""

    def __init__(self, families: Sequence[Family], *, seed: int) -> None:
        self._rng = random.Random(seed)
        self._families = [f for f in families if any(f.states.values())]
        asked = [p for f in families for p in f.pairs if p.question]
        asked += [p for p in load_contrasts("train") if p.question]
        self._asked = [(p.question, [p.older] + [p.newer] * p.conflict) for p in asked]
        self._asked += [
            (fact.question, [fact.first, fact.again, fact.second])
            for facts in load_facts("train")
            for fact in facts
        ]

    def batch(self, families: int, others: int) -> list[tuple[str, str]]:
        """Returns pairs: so many families, and so many other questions."""
        rng = self._rng
        pairs = []
        for family in rng.sample(self._families, min(families, len(self._families))):
            sentence = rng.choice(rng.choice([v for v in family.states.values() if v]))
            pairs.append((rng.choice(family.questions), sentence))
        pairs += [(q, rng.choice(texts)) for q, texts in rng.sample(self._asked, others)]
        return pairs


class Texts:
    """Tokenises every text once."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._ids: dict[str, list[int]] = {}

    def batch(self, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns ids and mask."""
        for text in texts:
            if text not in self._ids:
                self._ids[text] = self._tokenizer.encode(text).ids
        ids, mask = padded([self._ids[text] for text in texts])
        return ids.to(DEVICE), mask.to(DEVICE)


@torch.no_grad()
def encode(model: Encoder, texts: Texts, lines: Sequence[str]) -> np.ndarray:
    """Returns the vectors of lines."""
    parts = [
        model(*texts.batch(lines[start : start + 256])).cpu() for start in range(0, len(lines), 256)
    ]
    return torch.cat(parts).numpy()


def report(model: Encoder, texts: Texts, part: str) -> dict[str, Any]:
    """Measures how well unseen questions find their sentences among all of the part."""
    model.eval()
    families = load_families()
    found: dict[str, Any] = {}
    for name, chosen in (("unseen", held_out(families, part)), ("seen", seen(families, part))):
        lines = [(f.name, s) for f in chosen for v in f.states.values() for s in v]
        vectors = encode(model, texts, [s for _, s in lines])
        areas = []
        for family in chosen:
            own = np.array([n == family.name for n, _ in lines])
            for scores in encode(model, texts, family.questions) @ vectors.T:
                areas.append(auc(own, scores))
        found[f"behaviours, {name} families: AUC own against others"] = round(
            float(np.nanmean(areas)), 4
        )
    pairs = [p for f in held_out(families, part) for p in f.pairs if p.question and p.conflict]
    pool = sorted({p.older for p in pairs})
    vectors = encode(model, texts, pool)
    ranks = []
    for pair, scores in zip(
        pairs, encode(model, texts, [p.question for p in pairs]) @ vectors.T, strict=True
    ):
        ranks.append(int((scores > scores[pool.index(pair.older)]).sum()))
    for k in (1, 10):
        found[f"explicit, unseen families: recall at {k} of {len(pool)}"] = round(
            float(np.mean([r < k for r in ranks])), 4
        )
    return found


def main() -> None:
    """Reads the arguments, trains, measures and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nli", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--limit-s", type=float, default=1e9)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    started = time.perf_counter()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    texts = Texts()
    model = Encoder(load_backbone(args.checkpoint)).to(DEVICE)
    before = report(model, texts, "dev")
    held = Encoder(load_backbone(args.checkpoint)).to(DEVICE).eval()
    public = [p.older for p in load_nli(args.nli, limit=40_000, seed=0)]
    pairs = Pairs(seen(load_families(), "train"), seed=args.seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    model.train()
    for step in range(args.steps):
        done = max(step / args.steps, (time.perf_counter() - started) / args.limit_s)
        if done >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = args.lr * min((done + 1e-3) / 0.06, 1 - done)
        batch = pairs.batch(224, 160)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            questions = model(*texts.batch([q for q, _ in batch]))
            sentences = model(*texts.batch([s for _, s in batch]))
            line = texts.batch(rng.sample(public, 128))
            moved = model(*line)
        with torch.no_grad():
            stayed = held(*line)
        scores = questions @ sentences.T / TEMPERATURE
        own = torch.arange(len(batch), device=DEVICE)
        loss = (cross_entropy(scores, own) + cross_entropy(scores.T, own)) / 2
        loss = loss + HOLD * (1 - (moved * stayed).sum(1)).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f} {done:.0%}", flush=True)
    found = {"args": vars(args), "before": before, "after": report(model, texts, "dev")}
    args.out.mkdir(parents=True, exist_ok=True)
    state = {k: v.half() for k, v in model.backbone.state_dict().items()}
    torch.save(state, args.out / "weights.pt")
    (args.out / "report.json").write_text(json.dumps(found, indent=1, default=str))
    print(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    main()
