"""The training data: families of states, contrasts, facts, remarks, public NLI pairs, mined ones.

Two things are held out. Whole families, by writer (`DEV_WRITERS`, `TEST_WRITERS`) or, of the many
small ones (`BY_NAME`), by a hash of their name, measure what the model makes of a topic it never
saw. In all other families a share of the sentences and pairs,
chosen by a hash of their text, measures unseen sentences of seen families. A contrast (one older
line, many newer), a relation of facts and a topic of remarks fall into one part whole.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent.parent / "corpus"
DEV_WRITERS = frozenset({"w12"})
TEST_WRITERS = frozenset({"w11"})
CLEAR = frozenset({"w126", "w127", "w128", "w129", "w133"})
"""Writers whose behaviours leave no doubt about the state; those of others often do."""
BY_NAME = frozenset({"w110", "w111", "w112", "w113", "w118", "w119", "w120"}) | CLEAR
CONTRASTS = {"contrast": "contrasts.jsonl", "plain": "plain.jsonl", "shown": "shown.jsonl"}
"""Files of contrasts, by the category that their pairs get."""
DEV_SHARE, TEST_SHARE = 0.06, 0.09


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, the question they are judged by, and whether they conflict."""

    question: str
    older: str
    newer: str
    conflict: bool
    category: str
    group: str = ""
    """What must stay in one part together; without it the pair stands for itself."""

    @property
    def part(self) -> str:
        """The part of the data that the pair belongs to."""
        return part_of(self.group or self.older + self.newer)


@dataclass(frozen=True, slots=True)
class Fact:
    """A subject's value stated twice, and another value of it; `single`: one value at a time."""

    relation: str
    single: bool
    first: str
    again: str
    second: str
    question: str


@dataclass(slots=True)
class Family:
    """One attribute with exclusive states, and everything written about it."""

    name: str
    writer: str
    questions: list[str] = field(default_factory=list)
    states: dict[str, list[str]] = field(default_factory=dict)
    """Behaviours that imply a state without naming it."""
    says: dict[str, list[str]] = field(default_factory=dict)
    """Lines that say outright which state it is."""
    neutral: list[str] = field(default_factory=list)
    not_theirs: list[str] = field(default_factory=list)
    """Lines that show a state, but not the user's own of today."""
    pairs: list[Pair] = field(default_factory=list)

    @property
    def clear(self) -> bool:
        """Whether its behaviours leave no doubt about the state."""
        return self.writer in CLEAR

    @property
    def part(self) -> str:
        """The part that the family is held out for whole, or "train"."""
        if self.writer in DEV_WRITERS:
            return "dev"
        if self.writer in TEST_WRITERS:
            return "test"
        return part_of(self.name) if self.writer in BY_NAME else "train"


def part_of(text: str) -> str:
    """Says to which part of the data a text belongs, by its hash."""
    share = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32
    if share < DEV_SHARE:
        return "dev"
    return "test" if share < DEV_SHARE + TEST_SHARE else "train"


def load_families(folder: Path = CORPUS) -> list[Family]:
    """Reads the corpus; a family that several writers worked on is joined."""
    families: dict[str, Family] = {}
    for path in sorted(folder.glob("w*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            family = families.setdefault(row["family"], Family(row["family"], row["writer"]))
            family.questions += row["questions"]
            for key, lines in (("states", family.states), ("says", family.says)):
                for state, sentences in row.get(key, {}).items():
                    lines.setdefault(state, []).extend(sentences)
            family.neutral += row["neutral"]
            family.not_theirs += row.get("not_theirs", [])
            for key, conflict in (("explicit", True), ("lookalikes", False)):
                family.pairs += [
                    Pair(p["question"], p["older"], p["newer"], conflict, f"{key}/{p['kind']}")
                    for p in row[key]
                ]
    return list(families.values())


def load_contrasts(part: str, folder: Path = CORPUS) -> list[Pair]:
    """Reads the contrasts of one part: an older line, and newer ones that change it or don't.

    "plain" are ordinary facts in ordinary words, "shown" what behaviours show.
    """
    return [
        Pair(
            row["question"],
            row["older"],
            newer["text"],
            newer["kind"] == "conflict",
            f"{category}/{newer['kind']}",
            group=row["older"],
        )
        for category, name in CONTRASTS.items()
        for row in rows_of(folder / name)
        if part_of(row["older"]) == part
        for newer in row["newer"]
    ]


def load_facts(part: str, folder: Path = CORPUS) -> list[list[Fact]]:
    """Reads the relations of one part, each with the facts of its subjects."""
    return [
        [
            Fact(row["relation"], row["single"], f["first"], f["again"], f["second"], f["question"])
            for f in row["facts"]
        ]
        for row in rows_of(folder / "facts.jsonl")
        if part_of(row["relation"]) == part
    ]


def load_remarks(part: str, folder: Path = CORPUS) -> list[list[str]]:
    """Reads short lines of everyday chat and logs, a list for each topic of one part."""
    return [
        row["lines"] for row in rows_of(folder / "remarks.jsonl") if part_of(row["topic"]) == part
    ]


def fact_pairs(relations: Sequence[Sequence[Fact]], *, seed: int) -> list[Pair]:
    """Draws labelled pairs of facts: another value, the same value, another subject."""
    rng = random.Random(seed)
    drawn = []
    for facts in relations:
        for fact in facts:
            stated = rng.choice([fact.first, fact.again])
            kind = "facts/other value" if fact.single else "facts/several values"
            drawn.append(Pair(fact.question, stated, fact.second, fact.single, kind))
            drawn.append(Pair(fact.question, fact.first, fact.again, False, "facts/restated"))
            other = rng.choice([f for f in facts if f is not fact])
            text = rng.choice([other.first, other.again, other.second])
            drawn.append(Pair(fact.question, stated, text, False, "facts/other subject"))
    return drawn


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Returns the rows of a file of the corpus."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def held_out(families: Sequence[Family], part: str) -> list[Family]:
    """Returns the families that are held out whole for `part` ("dev" or "test")."""
    return [f for f in families if f.part == part]


def seen(families: Sequence[Family], part: str) -> list[Family]:
    """Returns the training families, cut down to the sentences and pairs of one part."""

    def own(sentences: list[str]) -> list[str]:
        return [s for s in sentences if part_of(s) == part]

    return [
        Family(
            name=family.name,
            writer=family.writer,
            questions=family.questions,
            states={state: own(sentences) for state, sentences in family.states.items()},
            says={state: own(sentences) for state, sentences in family.says.items()},
            neutral=own(family.neutral),
            not_theirs=own(family.not_theirs),
            pairs=[p for p in family.pairs if p.part == part],
        )
        for family in families
        if family.part == "train"
    ]


def behavioural_pairs(families: Sequence[Family], *, per_family: int, seed: int) -> list[Pair]:
    """Draws labelled pairs: other state (a conflict), same state, neutral, another family.

    Those of behaviours that leave no doubt are called "clear".
    """
    rng = random.Random(seed)
    drawn: list[Pair] = []
    for family in families:
        states = {label: s for label, s in family.states.items() if len(s) >= 2}
        if len(states) < 2:
            continue
        elsewhere = [
            s for f in families if f.name != family.name for v in f.states.values() for s in v
        ]
        kind = "clear" if family.clear else "behavioural"
        for _ in range(per_family):
            question = rng.choice(family.questions)
            a, b = rng.sample(sorted(states), 2)
            one = rng.choice(states[a])
            drawn.append(Pair(question, one, rng.choice(states[b]), True, f"{kind}/old-new"))
            same = rng.sample(states[a], 2)
            drawn.append(Pair(question, same[0], same[1], False, f"{kind}/same-state"))
            if family.neutral:
                near = rng.choice(family.neutral)
                drawn.append(Pair(question, near, one, False, f"{kind}/neighbour"))
            drawn.append(Pair(question, rng.choice(elsewhere), one, False, "unrelated/chat"))
    return drawn


def unrelated_updates(families: Sequence[Family], *, count: int, seed: int) -> list[Pair]:
    """Draws pairs of two updates from two families: full of cue words, and no conflict."""
    rng = random.Random(seed)
    pools = [family.pairs for family in families if family.pairs]
    drawn = []
    for _ in range(count):
        one, other = (rng.choice(pool) for pool in rng.sample(pools, 2))
        text = rng.choice([one.older, one.newer])
        drawn.append(Pair(one.question, text, other.newer, False, "unrelated/updates"))
    return drawn


def load_nli(path: Path, *, limit: int, seed: int) -> list[Pair]:
    """Reads public NLI pairs; contradiction is a conflict, everything else is not."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    random.Random(seed).shuffle(rows)
    return [
        Pair("", r["premise"], r["hypothesis"], r["label"] == "contradiction", "nli")
        for r in rows[:limit]
        if len(r["premise"]) < 400 and len(r["hypothesis"]) < 400
    ]


def load_mined(path: Path) -> list[Pair]:
    """Reads what training.kappa.mine has found."""
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [Pair(question, older, newer, False, "mined") for question, older, newer in rows]


def load_statebench(path: Path) -> list[Pair]:
    """Reads StateBench timelines: a fact and what supersedes it conflict, other facts do not."""
    pairs: list[Pair] = []
    for line in path.read_text("utf-8").splitlines():
        timeline = json.loads(line)
        facts = {f["key"]: f["value"] for f in timeline["initial_state"]["persistent_facts"]}
        question = next((e["prompt"] for e in timeline["events"] if e["type"] == "query"), "")
        for event in timeline["events"]:
            for write in event.get("writes", []):
                old = facts.get(write.get("supersedes") or "")
                if old and old != write["value"]:
                    pairs.append(Pair(question, old, write["value"], True, "statebench"))
                others = [v for k, v in facts.items() if k != write.get("supersedes")]
                pairs += [
                    Pair(question, v, write["value"], False, "statebench")
                    for v in others[:1]
                    if v != write["value"]
                ]
                facts[write["key"]] = write["value"]
    return pairs
