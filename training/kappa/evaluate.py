"""Measures the shipped oracle: its gate, explicit pairs, behaviours, notebooks, two facts at once.

python -m training.kappa.evaluate [--part test] [--record]

With --record, the shipped test pairs are judged too, as `gcmem qualify` does, and the verdict is
written beside the model.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from training.kappa.data import (
    Family,
    Pair,
    behavioural_pairs,
    held_out,
    load_contrasts,
    load_families,
    seen,
)
from training.kappa.notebooks import Notebook, load_notebooks

from gcmem import Candidate, CandidateSet, Chunk
from gcmem.cli.output import print_json
from gcmem.defaults import default_encoder, default_oracle
from gcmem.judge import GoldOracle
from gcmem.judge.fitness import SHIPPED_RECORD
from gcmem.judge.labelled import SHIPPED_PAIRS, LabelledPair, LabelledSet, load_pairs
from gcmem.judge.pairwise import closeness
from gcmem.judge.qualification import qualify_pairs, qualify_sets
from gcmem.judge.recipe import shipped_recipe
from gcmem.resolve import Resolver

START = datetime(2026, 1, 1, tzinfo=UTC)


def as_labelled(pair: Pair) -> LabelledPair:
    """Returns a pair as `gcmem qualify` reads it."""
    return LabelledPair(
        older=pair.older,
        newer=pair.newer,
        conflict=pair.conflict,
        question=pair.question,
        category=pair.category,
    )


def pairs_of(families: list[Family]) -> list[LabelledPair]:
    """Returns the explicit and look-alike pairs of families."""
    return [as_labelled(p) for family in families for p in family.pairs]


def shown_by(families: list[Family], kind: str) -> list[LabelledPair]:
    """Returns pairs of behaviours: two states, one state, or a line close by."""
    drawn = behavioural_pairs(families, per_family=4, seed=3)
    return [as_labelled(p) for p in drawn if p.category.startswith(kind)]


def families_of(families: list[Family], part: str) -> list[Family]:
    """Returns everything that is held out for a part."""
    return [*held_out(families, part), *seen(families, part)]


def set_of(notebook: Notebook, slot: str, *, options: bool) -> LabelledSet:
    """Returns a notebook as a whole memory, asked for one slot; no line that stands may go."""
    lines = list(enumerate(notebook.lines))
    stale = [
        (older, str(a), str(b))
        for (a, older), (b, newer) in itertools.combinations(lines, 2)
        if older.contradicts(newer)
    ]
    gone = {a for _, a, _ in stale}
    items = tuple(
        Candidate(
            chunk=Chunk(id=str(n), text=line.text, at=START + timedelta(days=n), seq=n + 1),
            relevance=1.0,
            origin="mtm",
        )
        for n, line in lines
    )
    given = tuple(notebook.values(slot)) if options else ()
    return LabelledSet(
        candidates=CandidateSet(query=notebook.questions[slot], options=given, items=items),
        conflicts=tuple((a, b) for older, a, b in stale if older.slot == slot),
        must_keep=tuple(str(n) for n, _ in lines if str(n) not in gone),
    )


def two_facts(part: str, *, count: int = 150) -> list[LabelledPair]:
    """Returns messages of two plain facts, one of which changes, asked for that one or the other.

    Asked for the other, the message still holds.
    """
    groups: dict[str, list[Pair]] = {}
    for pair in load_contrasts(part):
        if pair.category.startswith("plain/") and pair.question and pair.conflict:
            groups.setdefault(pair.older, []).append(pair)
    rng = random.Random(0)
    asked = []
    for _ in range(count):
        changed, other = facts = rng.sample(sorted(groups), 2)
        newer = rng.choice(groups[changed]).newer
        rng.shuffle(facts)
        message = " ".join(fact.rstrip(".") + "." for fact in facts)
        asked += [
            LabelledPair(
                older=message,
                newer=newer,
                conflict=fact == changed,
                question=groups[fact][0].question,
                category="changed" if fact == changed else "other",
            )
            for fact in (changed, other)
        ]
    return asked


def gate_share(pairs: list[LabelledPair], *, few: bool) -> float:
    """Returns the share of pairs that the gate lets through, of a few or of many."""
    encode, gate = default_encoder().encode, shipped_recipe().gate
    passed = 0
    for pair in pairs:
        question, older, newer = encode([pair.question, pair.older, pair.newer])
        close = closeness(older, newer, None if few else question, on_topic=gate.on_topic)
        passed += bool(close >= gate.closeness / (2 if few else 1))
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
    for name, few in (("of many pairs", False), ("of a few", True)):
        print(
            f"gate, {name}: explicit updates let through {gate_share(asked, few=few):.1%} "
            f"of {len(asked)}, unrelated pairs {gate_share(mixed, few=few):.1%}"
        )
    for name, chosen in (("unseen", held_out(families, part)), ("seen", seen(families, part))):
        found = qualify_pairs(default_oracle(), pairs_of(chosen))
        print(
            f"{name} families: n {found.judged}, precision {found.precision}, recall {found.recall}"
        )
        for kind in ("clear", "behavioural"):
            if behaviours := shown_by(chosen, kind):
                found = qualify_pairs(default_oracle(), behaviours)
                print(
                    f"{name} families, {kind}: n {found.judged}, precision {found.precision}, "
                    f"recall {found.recall}, F1 {found.f1}"
                )
    rng = random.Random(0)
    asked_of = [(n, rng.choice(sorted(n.questions))) for n in load_notebooks(part)]
    for name, options in (("", False), (", options given", True)):
        sets = [set_of(notebook, slot, options=options) for notebook, slot in asked_of]
        found = qualify_sets(Resolver(default_oracle()), sets)
        print(
            f"notebooks{name}: {len(sets)} questions, old lines removed {found.shadowed:.1%}, "
            f"others kept {found.kept:.1%}"
        )
    told = qualify_pairs(default_oracle(), two_facts(part)).by_category
    right, wrong = told["changed"]["recall"], told["other"]["false_positive_rate"]
    print(
        f"{told['changed']['n']} messages of two facts: asked for the one that changed, "
        f"{right:.1%} go, for the other {wrong:.1%}"
    )
    if args.record:
        whole = qualify_pairs(default_oracle(), load_pairs(SHIPPED_PAIRS))
        print_json(whole)
        verdicts = {whole.oracle: whole.fitness, GoldOracle.id: "optimal"}
        SHIPPED_RECORD.write_text(json.dumps(verdicts, indent=2) + "\n")


if __name__ == "__main__":
    main()
