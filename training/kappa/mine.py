"""Finds lines of two subjects that a search would put side by side.

    python -m training.kappa.mine --out runs/mined.jsonl

Those are seldom as unlike as two random lines. Here lines of different families, contrasts and
notebooks meet that the gate would let meet. Where a behaviour is among them they are kept, others
if the shipped screen does not put them aside. They count as no conflict; by chance, a few may be
one.
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

from gcmem.defaults import default_encoder
from gcmem.judge.local.classifier import LocalClassifier
from gcmem.judge.pairwise import closeness
from gcmem.judge.recipe import SHIPPED, shipped_recipe

LINES, ANCHORS, PARTNERS = 24_000, 7_000, 8


@dataclass(frozen=True, slots=True)
class Said:
    """A line, a question that it stands beside, and the subject of both."""

    text: str
    question: str
    subject: str
    shown: bool = False
    """Whether it is a behaviour."""


def said(pairs: Sequence[Pair], subject: str) -> list[Said]:
    """Returns the lines of pairs about one subject."""
    return [Said(text, p.question, subject) for p in pairs for text in (p.older, p.newer)]


def all_lines() -> list[Said]:
    """Returns every line of the training part, each text once."""
    families = seen(load_families(), "train")
    found = [s for f in families for s in said(f.pairs, f.name)]
    found += [
        Said(text, family.questions[n % len(family.questions)], family.name, shown=True)
        for family in families
        for lines in family.states.values()
        for n, text in enumerate(lines)
    ]
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


def meetings(rng: random.Random) -> list[tuple[Said, Said]]:
    """Draws pairs of two subjects that the gate lets through by the question of the first."""
    every = all_lines()
    lines = rng.sample(every, min(LINES, len(every)))
    asked = [n for n, line in enumerate(lines) if line.question]
    anchors = rng.sample(asked, min(ANCHORS, len(asked)))
    vectors = encode([line.text for line in lines])
    questions = encode([lines[n].question for n in anchors])
    found = []
    gate = shipped_recipe().gate
    for n, question in zip(anchors, questions, strict=True):
        close = closeness(vectors, vectors[n], question, on_topic=gate.on_topic)
        near = close >= gate.closeness
        strange = [int(m) for m in np.flatnonzero(near) if lines[m].subject != lines[n].subject]
        for m in rng.sample(strange, min(PARTNERS, len(strange))):
            found.append((lines[n], lines[m]))
    return found


def doubted(met: Sequence[tuple[Said, Said]]) -> list[tuple[Said, Said]]:
    """Returns the pairs that the shipped screen does not put aside."""
    classifier = LocalClassifier()
    below = json.loads((SHIPPED / "config.json").read_text("utf-8"))["screen"]["below"]
    found = []
    for question, group in itertools.groupby(met, key=lambda pair: pair[0].question):
        pairs = list(group)
        glances = classifier.glance(question, [(one.text, other.text) for one, other in pairs])
        found += [pair for pair, glance in zip(pairs, glances, strict=True) if glance >= below]
    return found


def main() -> None:
    """Draws, looks and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    met = meetings(random.Random(args.seed))
    kept = [pair for pair in met if pair[0].shown or pair[1].shown]
    kept += doubted([pair for pair in met if not pair[0].shown and not pair[1].shown])
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w", encoding="utf-8") as file:
        for one, other in kept:
            row = (one.question, one.text, other.text)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{len(met)} pairs of two subjects meet, {len(kept)} are kept")


if __name__ == "__main__":
    main()
