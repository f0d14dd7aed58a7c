"""Trains a scorer: `python -m training.kappa.train --task pair --checkpoint DIR --out DIR`.

Two tasks. `pair`: question, older, newer → do they conflict? `stance`: question with an answer
option, sentence → does the sentence speak for the option? With --teacher DIR (a finished run of
the same task), half of each target is the teacher's score, and pairs without a label, drawn from
the same family, are learnt from the teacher alone. Writes weights.pt and report.json under --out.
Seeds are fixed; a GPU is used where there is one.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from training.kappa.data import (
    Draw,
    Family,
    Pair,
    behavioural_pairs,
    held_out,
    load_families,
    load_nli,
    load_statebench,
    seen,
    stance,
)
from training.kappa.metrics import auc, summarise
from training.kappa.model import Scorer, load_backbone

from gcmem.conflict.local import layout

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MAX_TOKENS = 128
PASSES = 4
STARTED = time.perf_counter()
COUNTS = {
    "explicit": 112,
    "lookalikes": 128,
    "nli": 72,
    "statebench": 8,
    "unrelated": 40,
    "behaviours": 24,
}


class Texts:
    """Tokenises every text once, and lays rows of texts out as padded tensors."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._ids: dict[str, list[int]] = {}
        self._start, self._end, self._pad = special_tokens(tokenizer)

    def _tokens(self, text: str) -> list[int]:
        if text not in self._ids:
            self._ids[text] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return self._ids[text]

    def batch(self, rows: list[tuple[str, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns ids and mask; the texts of a row are each closed by a separator."""
        sequences = [
            layout(
                [self._tokens(t) for t in row], room=MAX_TOKENS, start=self._start, end=self._end
            )
            for row in rows
        ]
        width = max(map(len, sequences))
        ids = np.full((len(sequences), width), self._pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        return torch.from_numpy(ids).to(DEVICE), torch.from_numpy(mask).to(DEVICE)


def special_tokens(tokenizer: Tokenizer) -> tuple[int, int, int]:
    """Returns the ids of start, separator and padding, by BERT's or MPNet's names."""
    if tokenizer.token_to_id("<s>") is not None:
        names = ("<s>", "</s>", "<pad>")
    else:
        names = ("[CLS]", "[SEP]", "[PAD]")
    start, end, pad = (tokenizer.token_to_id(name) for name in names)
    return start, end, pad


def train(model: Scorer, texts: Texts, draw: Draw, args: argparse.Namespace) -> None:
    """Runs the training loop."""
    teacher = load_teacher(args) if args.teacher else None
    counts = dict(COUNTS, **({"unlabelled": 128} if teacher else {}))
    if args.behaviours:
        counts["other states"] = 1
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    for step in range(args.steps):
        done = max(step / args.steps, (time.perf_counter() - STARTED) / args.limit_s)
        if done >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = args.lr * min((done + 1e-3) / 0.06, 1 - done)
        rows = draw.pairs(counts) if args.task == "pair" else draw.stances(args.stances)
        rows.sort(key=lambda row: sum(map(len, row[0])))  # alike in length, little padding
        labels = torch.tensor([0.5 if y is None else y for _, y in rows], device=DEVICE)
        if teacher is not None:
            labels = mix(labels, rows, teacher(rows))
        loss = bce(forward(model, texts, rows), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 200 == 0:
            print(f"step {step} loss {loss.item():.4f} {done:.0%}", flush=True)


def forward(
    model: Scorer, texts: Texts, rows: list[tuple[tuple[str, ...], float | None]]
) -> torch.Tensor:
    """Returns the logits of rows that are sorted by length, in a few passes of equal size."""
    size = -(-len(rows) // PASSES)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        parts = [
            model(*texts.batch([t for t, _ in rows[start : start + size]]))
            for start in range(0, len(rows), size)
        ]
    return torch.cat(parts).float()


def load_teacher(args: argparse.Namespace):  # noqa: ANN201
    """Returns a function that scores rows with a finished run."""
    said = json.loads((args.teacher / "report.json").read_text())["args"]
    checkpoint = Path(said["checkpoint"])
    layers = int(said["layers"]) if said["layers"] not in (None, "None") else None
    model = Scorer(load_backbone(checkpoint, layers=layers)).to(DEVICE).eval()
    model.load_state_dict(torch.load(args.teacher / "weights.pt"))
    texts = Texts(Tokenizer.from_file(str(checkpoint / "tokenizer.json")))

    @torch.no_grad()
    def score_rows(rows: list[tuple[tuple[str, ...], float | None]]) -> torch.Tensor:
        return torch.sigmoid(forward(model, texts, rows))

    return score_rows


def mix(
    labels: torch.Tensor, rows: list[tuple[tuple[str, ...], float | None]], taught: torch.Tensor
) -> torch.Tensor:
    """Half label, half teacher; the teacher alone where there is no label."""
    unlabelled = torch.tensor([y is None for _, y in rows], device=DEVICE)
    return torch.where(unlabelled, taught, 0.5 * labels + 0.5 * taught)


@torch.no_grad()
def score(model: Scorer, texts: Texts, rows: list[tuple[str, ...]]) -> np.ndarray:
    """Returns the probability of each row."""
    model.eval()
    out = []
    for start in range(0, len(rows), 512):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            logits = model(*texts.batch(rows[start : start + 512]))
        out.append(torch.sigmoid(logits.float()).cpu().numpy())
    return np.concatenate(out)


def pair_row(pair: Pair) -> tuple[str, ...]:
    """Returns a pair as the model reads it: the texts in alphabetical order, so in either order."""
    return (pair.question, *sorted((pair.older, pair.newer)))


def pair_report(
    model: Scorer, texts: Texts, families: list[Family], part: str
) -> dict[str, object]:
    """Measures the pair task on what was held out."""
    new, old = held_out(families, part), seen(families, part)
    sets = {
        "explicit, unseen families": [p for f in new for p in f.pairs],
        "explicit, seen families": [p for f in old for p in f.pairs],
        "behavioural, unseen families": behavioural_pairs(new, per_family=150, seed=1),
        "behavioural, seen families": behavioural_pairs(old, per_family=15, seed=2),
    }
    return {
        name: summarise(pairs, score(model, texts, [pair_row(p) for p in pairs]))
        for name, pairs in sets.items()
    }


def stance_report(
    model: Scorer, texts: Texts, families: list[Family], part: str
) -> dict[str, object]:
    """Measures the stance task: the right option chosen, and on topic told from off."""
    report = {}
    for name, chosen in (("unseen", held_out(families, part)), ("seen", seen(families, part))):
        right, on, off = [], [], []
        for family in chosen:
            labels = sorted(family.states)
            question = family.questions[0]
            for label in labels:
                for sentence in family.states[label]:
                    rows: list[tuple[str, ...]] = [(stance(question, o), sentence) for o in labels]
                    scores = score(model, texts, rows)
                    right.append(labels[int(scores.argmax())] == label)
                    on.append(scores.max())
            for sentence in family.neutral:
                rows = [(stance(question, o), sentence) for o in labels]
                off.append(score(model, texts, rows).max())
        both = np.array(on + off)
        report[name] = {
            "accuracy": round(float(np.mean(right)), 4),
            "n": len(right),
            "on_topic_auc": round(auc(np.arange(len(both)) < len(on), both), 4),
        }
    return report


def main() -> None:
    """Reads the arguments, trains, measures and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--task", choices=["pair", "stance"], required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--layers", type=int, help="keep this many layers, evenly spaced")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--nli", type=Path)
    parser.add_argument("--nli-limit", type=int, default=150_000)
    parser.add_argument("--statebench", type=Path)
    parser.add_argument("--behaviours", action="store_true", help="other states are conflicts too")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--stances", type=int, default=64, help="sentences a step")
    parser.add_argument(
        "--limit-s", type=float, default=1e9, help="end then, learning rate and all"
    )
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="dev", choices=["dev", "test"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    families = load_families()
    texts = Texts(Tokenizer.from_file(str(args.checkpoint / "tokenizer.json")))
    model = Scorer(load_backbone(args.checkpoint, layers=args.layers)).to(DEVICE).train()
    extra: dict[str, list[Pair]] = {}
    if args.nli:
        extra["nli"] = load_nli(args.nli, limit=args.nli_limit, seed=args.seed)
    if args.statebench:
        extra["statebench"] = load_statebench(args.statebench)
    train(model, texts, Draw(seen(families, "train"), extra, args.seed), args)
    measure = pair_report if args.task == "pair" else stance_report
    report = {"args": vars(args), **measure(model, texts, families, args.part)}
    args.out.mkdir(parents=True, exist_ok=True)
    torch.save({k: v.half() for k, v in model.state_dict().items()}, args.out / "weights.pt")
    (args.out / "report.json").write_text(json.dumps(report, indent=1, default=str))
    print(json.dumps(report, indent=1, default=str))


if __name__ == "__main__":
    main()
