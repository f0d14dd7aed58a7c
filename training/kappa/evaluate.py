"""Measures the shipped oracle on explicit pairs, families seen and unseen apart, and its gate.

python -m training.kappa.evaluate [--part test]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from training.kappa.data import Family, held_out, load_families, seen

from gcmem import Candidate, CandidateSet, Chunk
from gcmem.conflict import TopicGate
from gcmem.defaults import default_encoder, default_oracle
from gcmem.qualify import LabelledPair, qualify_pairs
from gcmem.retrieve import KeywordExpander


def pairs_of(families: list[Family]) -> list[LabelledPair]:
    """Returns the explicit and look-alike pairs of families."""
    return [
        LabelledPair(
            older=p.older,
            newer=p.newer,
            conflict=p.conflict,
            question=p.question,
            category=p.category,
        )
        for family in families
        for p in family.pairs
    ]


def families_of(families: list[Family], part: str) -> list[Family]:
    """Returns everything that is held out for a part."""
    return [*held_out(families, part), *seen(families, part)]


def gate_share(pairs: list[LabelledPair]) -> float:
    """Returns the share of pairs that the gate lets through, at the relevances of a search."""
    encoder, expander = default_encoder(), KeywordExpander()
    gate = TopicGate(encoder)
    passed = 0
    for pair in pairs:
        queries = encoder.encode(expander.expand(pair.question))
        texts = encoder.encode([pair.older, pair.newer])
        chunks = [Chunk(id=str(n), text=t, at=None) for n, t in enumerate((pair.older, pair.newer))]
        items = tuple(
            Candidate(chunk=chunk, relevance=float((queries @ vector).max()), origin="mtm")
            for chunk, vector in zip(chunks, texts, strict=True)
        )
        candidates = CandidateSet(query=pair.question, items=items)
        passed += len(gate.open_to(candidates, [(chunks[0], chunks[1])]))
    return passed / len(pairs)


def main() -> None:
    """Prints precision and recall of both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", default="test", choices=["dev", "test"])
    part = parser.parse_args().part
    families = load_families()
    asked = [p for p in pairs_of(families_of(families, part)) if p.conflict and p.question]
    mixed = [replace(p, newer=q.newer) for p, q in zip(asked, asked[97:] + asked[:97], strict=True)]
    print(f"gate: explicit updates let through {gate_share(asked):.1%} of {len(asked)}")
    print(f"gate: unrelated pairs let through {gate_share(mixed):.1%}")
    for name, chosen in (("unseen", held_out(families, part)), ("seen", seen(families, part))):
        found = qualify_pairs(default_oracle(), pairs_of(chosen))
        print(
            f"{name} families: n {found.judged}, precision {found.precision}, recall {found.recall}"
        )


if __name__ == "__main__":
    main()
