"""Measures the joint oracle on memories put together from the held-out families.

    python -m training.kappa.joint [--part dev]

Each memory has 5 to 35 lines of an old state, 1 to 4 of a new one, and 12 others: neutral lines,
look-alikes and lines of other families. Prints what goes, what stays, and how often a vote over
what is left is right. The settings of the chain were chosen on the dev part.
"""

from __future__ import annotations

import argparse
import itertools
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from training.kappa.data import Family, held_out, load_families
from training.kappa.draw import NO_STANCE

from gcmem import Candidate, CandidateSet, Chunk
from gcmem.defaults import default_classifier
from gcmem.judge import GoldOracle, JointOracle
from gcmem.resolve import temporal_dominance

START = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Memory:
    """Lines in the order of time, each with its kind: old, new or other."""

    question: str
    options: tuple[str, ...]
    answer: str
    lines: tuple[tuple[str, str], ...]

    def candidates(self) -> CandidateSet:
        """Returns the memory as a candidate set."""
        items = tuple(
            Candidate(
                chunk=Chunk(id=f"{kind}{n}", text=text, at=START + timedelta(days=n), seq=n),
                relevance=1.0,
                origin="mtm",
            )
            for n, (kind, text) in enumerate(self.lines, 1)
        )
        return CandidateSet(query=self.question, options=self.options, items=items)


def memories(families: list[Family], *, seed: int) -> list[Memory]:
    """Returns one memory for every change of every family."""
    rng = random.Random(seed)
    found = []
    for family in families:
        options = tuple(sorted(family.states))
        elsewhere = [s for f in families if f is not family for v in f.states.values() for s in v]
        look = [p.newer for p in family.pairs if p.category in NO_STANCE]
        for old, new in itertools.permutations(options, 2):
            lines = [("old", s) for s in rng.sample(family.states[old], rng.randint(5, 35))]
            lines += [("new", s) for s in rng.sample(family.states[new], rng.randint(1, 4))]
            others = rng.sample(family.neutral, 3) + rng.sample(elsewhere, 6) + rng.sample(look, 3)
            for text in others:
                lines.insert(rng.randint(0, len(lines)), ("other", text))
            found.append(Memory(family.questions[0], options, new, tuple(lines)))
    return found


def vote(memory: Memory, texts: list[str]) -> str:
    """Returns the option that most of the texts speak for."""
    said = default_classifier().stances(memory.question, memory.options, texts)
    shares = [sum(row[n] for row in said) for n in range(len(memory.options))]
    return memory.options[shares.index(max(shares))]


def main() -> None:
    """Prints the shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", default="dev", choices=["dev", "test"])
    part = parser.parse_args().part
    # The small ones, which have no pairs, have too few lines of a state.
    families = [f for f in held_out(load_families(), part) if f.pairs]
    oracle = JointOracle(default_classifier(), GoldOracle([]))
    gone = {"old": 0, "new": 0, "other": 0}
    count = dict(gone)
    before = after = asked = 0
    for memory in (m for seed in range(ROUNDS) for m in memories(families, seed=seed)):
        candidates = memory.candidates()
        resolution = temporal_dominance(candidates, oracle.judge(candidates))
        for item in candidates:
            count[item.chunk.id.rstrip("0123456789")] += 1
        for shadow in resolution.shadows:
            gone[shadow.candidate.chunk.id.rstrip("0123456789")] += 1
        asked += 1
        before += vote(memory, [text for _, text in memory.lines]) == memory.answer
        after += vote(memory, [item.chunk.text for item in resolution.kept]) == memory.answer
    print(f"{asked} memories; a vote over everything is right in {before / asked:.1%}")
    print(f"old lines removed: {gone['old'] / count['old']:.1%}")
    for kind in ("new", "other"):
        print(f"{kind} lines kept: {1 - gone[kind] / count[kind]:.1%}")
    print(f"a vote over what is left is right in {after / asked:.1%}")


if __name__ == "__main__":
    main()
