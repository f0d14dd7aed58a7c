"""Measures the shipped oracle on explicit pairs, families seen and unseen apart, and its gate.

python -m training.kappa.evaluate [--part test] [--record]

With --record, the shipped test pairs are judged too, and the verdict is written beside the model.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from training.kappa.data import Family, held_out, load_families, seen

from gcmem import Candidate, CandidateSet, Chunk
from gcmem.conflict import GoldOracle, TopicGate
from gcmem.defaults import default_encoder, default_oracle
from gcmem.qualify import (
    SHIPPED_PAIRS,
    SHIPPED_RECORD,
    LabelledPair,
    load_pairs,
    qualify_pairs,
)


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
    encoder = default_encoder()
    gate = TopicGate(encoder)
    passed = 0
    for pair in pairs:
        queries = encoder.encode([pair.question])
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
    parser.add_argument("--record", action="store_true", help="write qualification.json")
    args = parser.parse_args()
    part = args.part
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
    if args.record:
        whole = qualify_pairs(default_oracle(), load_pairs(SHIPPED_PAIRS))
        verdicts = {whole.oracle: whole.verdict, GoldOracle.id: "optimal"}
        SHIPPED_RECORD.write_text(json.dumps(verdicts, indent=2) + "\n")


if __name__ == "__main__":
    main()
