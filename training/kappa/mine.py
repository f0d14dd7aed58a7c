"""Finds lines of two subjects that the shipped oracle would look at twice.

    python -m training.kappa.mine --out runs/mined.jsonl

What a search puts side by side is seldom as unlike as two random lines. Here lines of different
families, contrasts and notebooks meet that the gate would let meet, and those are kept that the
screen does not put aside. They count as no conflict; by chance, a few may be one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from training.kappa.data import Pair, load_contrasts, load_families, seen
from training.kappa.notebooks import load_notebooks

from gcmem.conflict.local import FOLDER, LocalClassifier
from gcmem.conflict.pairwise import CLOSENESS, closeness
from gcmem.defaults import default_encoder

LINES, ANCHORS, PARTNERS = 14_000, 3_000, 10


@dataclass(frozen=True, slots=True)
class Said:
    """A line, a question that it stands beside, and the subject of both."""

    text: str
    question: str
    subject: str


def said(pairs: Sequence[Pair], subject: str) -> list[Said]:
    """Returns the lines of pairs about one subject."""
    return [Said(text, p.question, subject) for p in pairs for text in (p.older, p.newer)]


def all_lines() -> list[Said]:
    """Returns every line of the training part, each text once."""
    found = [s for f in seen(load_families(), "train") for s in said(f.pairs, f.name)]
    found += [s for p in load_contrasts("train") for s in said([p], p.group)]
    found += [
        Said(line.text, notebook.questions.get(line.slot or "", ""), notebook.subject)
        for notebook in load_notebooks("train")
        for line in notebook.lines
    ]
    return list({one.text: one for one in found}.values())


def encode(texts: Sequence[str]) -> np.ndarray:
    """Returns the vectors of texts, encoded in pieces."""
    encoder = default_encoder()
    return np.concatenate([encoder.encode(texts[n : n + 256]) for n in range(0, len(texts), 256)])


def meetings(rng: random.Random) -> list[tuple[str, str, str]]:
    """Draws pairs of two subjects that the gate lets through, with the question of the first."""
    every = all_lines()
    lines = rng.sample(every, min(LINES, len(every)))
    asked = [n for n, line in enumerate(lines) if line.question]
    anchors = rng.sample(asked, min(ANCHORS, len(asked)))
    vectors = encode([line.text for line in lines])
    questions = encode([lines[n].question for n in anchors])
    found = []
    for n, question in zip(anchors, questions, strict=True):
        near = closeness(vectors, vectors[n], question) >= CLOSENESS
        strange = [int(m) for m in np.flatnonzero(near) if lines[m].subject != lines[n].subject]
        for m in rng.sample(strange, min(PARTNERS, len(strange))):
            found.append((lines[n].question, lines[n].text, lines[m].text))
    return found


def main() -> None:
    """Draws, looks and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    met = meetings(random.Random(args.seed))
    classifier = LocalClassifier()
    doubted = json.loads((FOLDER / "config.json").read_text("utf-8"))["screen"]["below"]
    kept = []
    for question, group in itertools.groupby(met, key=lambda pair: pair[0]):
        pairs = [(one, other) for _, one, other in group]
        glances = classifier.glance(question, pairs)
        kept += [
            (question, *pair)
            for pair, glance in zip(pairs, glances, strict=True)
            if glance >= doubted
        ]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(pair, ensure_ascii=False) + "\n" for pair in kept)
    print(f"{len(met)} pairs of two subjects meet, {len(kept)} are doubted")


if __name__ == "__main__":
    main()
