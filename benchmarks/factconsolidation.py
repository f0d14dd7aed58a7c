"""Evaluates the shipped κ on FactConsolidation, which it was not trained on.

    python benchmarks/factconsolidation.py context_6k.txt

The file is the context of MemoryAgentBench's FactConsolidation (MIT): numbered facts in plain
sentences; later facts supersede earlier ones. Two facts conflict if they have the same subject and
relation but different values; hard negatives have the same relation and another subject.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from itertools import combinations
from pathlib import Path

from gcmem.defaults import default_oracle
from gcmem.judge.labelled import LabelledPair
from gcmem.judge.qualification import qualify_pairs

FACT = re.compile(r"\d+\. (.*)$")
FRAME = re.compile(r"^(.*\b(?:is|of|in|by|to|was|are|from|as))\s+(.+?)\.?$")
NAME = re.compile(r"[A-Z][\w.'’-]*(?: (?:(?:of|the|and|de|van) )?[A-Z][\w.'’-]*)*")
MOST = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("context", type=Path)
    pairs = labelled(parser.parse_args().context.read_text("utf-8").splitlines())
    found = qualify_pairs(default_oracle(), pairs)
    print(f"{found.oracle}: precision {found.precision}, recall {found.recall}, f1 {found.f1}")
    for name, figures in found.by_category.items():
        print(name, dict(figures))


def labelled(lines: list[str]) -> list[LabelledPair]:
    """Returns conflicts, pairs with the same relation and another subject, and random pairs."""
    facts = [match.group(1) for line in lines if (match := FACT.match(line.strip()))]
    frames: dict[str, list[str]] = defaultdict(list)
    for fact in facts:
        if match := FRAME.match(fact):
            frames[match.group(1)].append(fact)
    relations: dict[str, list[str]] = defaultdict(list)
    for frame, same in frames.items():
        relations[NAME.sub("X", frame)].append(same[-1])
    rng = random.Random(0)
    conflicts = [p for same in frames.values() for p in combinations(same, 2) if p[0] != p[1]]
    others = [p for same in relations.values() for p in combinations(same, 2)]
    unrelated = [(a, b) for a, b in (rng.sample(facts, 2) for _ in range(MOST))]
    rng.shuffle(others)
    known = set(conflicts)
    return [
        LabelledPair(older=a, newer=b, conflict=name == "conflict", category=name)
        for name, chosen in (
            ("conflict", conflicts),
            ("same relation, other subject", others[:MOST]),
            ("random", [p for p in unrelated if p not in known]),
        )
        for a, b in chosen
    ]


if __name__ == "__main__":
    main()
