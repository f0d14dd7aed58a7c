"""Measures the shipped oracle: its gate, explicit pairs of seen and unseen families, notebooks.

python -m training.kappa.evaluate [--part test] [--record]

With --record, the shipped test pairs are judged too, and the verdict is written beside the model.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from training.kappa.data import Family, held_out, load_families, seen
from training.kappa.notebooks import Notebook, load_notebooks

from gcmem import Candidate, CandidateSet, Chunk
from gcmem.conflict import GoldOracle, TopicGate
from gcmem.defaults import default_encoder, default_oracle
from gcmem.qualify import (
    SHIPPED_PAIRS,
    SHIPPED_RECORD,
    LabelledPair,
    LabelledSet,
    load_pairs,
    qualify_pairs,
    qualify_sets,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


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


def sets_of(notebook: Notebook, *, options: bool) -> list[LabelledSet]:
    """Returns a notebook as one whole memory a question; no line that stands may go."""
    places = range(len(notebook.lines))
    stale = {
        slot: [
            (str(a), str(b))
            for a in places
            for b in places[a + 1 :]
            if notebook.lines[a].slot == slot and notebook.lines[a].contradicts(notebook.lines[b])
        ]
        for slot in notebook.questions
    }
    gone = {older for pairs in stale.values() for older, _ in pairs}
    kept = tuple(str(n) for n in places if str(n) not in gone)
    found = []
    for slot, question in notebook.questions.items():
        items = tuple(
            Candidate(
                chunk=Chunk(id=str(n), text=line.text, at=START + timedelta(days=n), seq=n + 1),
                relevance=1.0,
                origin="mtm",
            )
            for n, line in enumerate(notebook.lines)
        )
        candidates = CandidateSet(
            query=question, options=tuple(notebook.values(slot)) if options else (), items=items
        )
        found.append(
            LabelledSet(candidates=candidates, conflicts=tuple(stale[slot]), must_keep=kept)
        )
    return found


def gate_share(pairs: list[LabelledPair]) -> float:
    """Returns the share of pairs that the gate lets through."""
    gate = TopicGate(default_encoder())
    passed = 0
    for pair in pairs:
        chunks = [Chunk(id=str(n), text=t, at=None) for n, t in enumerate((pair.older, pair.newer))]
        candidates = CandidateSet(query=pair.question, items=())
        passed += len(gate.open_to(candidates, [(chunks[0], chunks[1])]))
    return passed / len(pairs)


def main() -> None:
    """Prints what the gate lets through, and how the oracle does on pairs and notebooks."""
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
    for name, options in (("", False), (", options given", True)):
        sets = [s for n in load_notebooks(part) for s in sets_of(n, options=options)]
        found = qualify_sets(default_oracle(), sets)
        print(
            f"notebooks{name}: {len(sets)} questions, old lines removed {found.shadowed:.1%}, "
            f"others kept {found.kept:.1%}"
        )
    if args.record:
        whole = qualify_pairs(default_oracle(), load_pairs(SHIPPED_PAIRS))
        verdicts = {whole.oracle: whole.verdict, GoldOracle.id: "optimal"}
        SHIPPED_RECORD.write_text(json.dumps(verdicts, indent=2) + "\n")


if __name__ == "__main__":
    main()
