"""The training data: families of states, explicit updates, look-alikes, and public NLI pairs.

Two things are held out. Whole families, by writer (`DEV_WRITERS`, `TEST_WRITERS`), measure what
the model makes of a topic it never saw. In all other families a share of the sentences and pairs,
chosen by a hash of their text, measures unseen sentences of seen families.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "corpus"
DEV_WRITERS = frozenset({"w12"})
TEST_WRITERS = frozenset({"w11"})
DEV_SHARE, TEST_SHARE = 0.06, 0.09


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, the question they are judged by, and whether they conflict."""

    question: str
    older: str
    newer: str
    conflict: bool
    category: str


@dataclass(slots=True)
class Family:
    """One attribute with exclusive states, and everything written about it."""

    name: str
    writer: str
    questions: list[str] = field(default_factory=list)
    states: dict[str, list[str]] = field(default_factory=dict)
    neutral: list[str] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)


def part_of(text: str) -> str:
    """Says to which part of the data a text belongs, by its hash."""
    share = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32
    if share < DEV_SHARE:
        return "dev"
    return "test" if share < DEV_SHARE + TEST_SHARE else "train"


def load_families(folder: Path = CORPUS) -> list[Family]:
    """Reads the corpus; a family that several writers worked on is joined."""
    families: dict[str, Family] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            family = families.setdefault(row["family"], Family(row["family"], row["writer"]))
            family.questions += row["questions"]
            for state, sentences in row["states"].items():
                family.states.setdefault(state, []).extend(sentences)
            family.neutral += row["neutral"]
            for key, conflict in (("explicit", True), ("lookalikes", False)):
                family.pairs += [
                    Pair(p["question"], p["older"], p["newer"], conflict, f"{key}/{p['kind']}")
                    for p in row[key]
                ]
    return list(families.values())


def held_out(families: Sequence[Family], part: str) -> list[Family]:
    """Returns the families of writers that are held out whole for `part` ("dev" or "test")."""
    writers = DEV_WRITERS if part == "dev" else TEST_WRITERS
    return [f for f in families if f.writer in writers]


def seen(families: Sequence[Family], part: str) -> list[Family]:
    """Returns the training families, cut down to the sentences and pairs of one part."""
    cut = []
    for family in families:
        if family.writer in DEV_WRITERS | TEST_WRITERS:
            continue
        cut.append(
            Family(
                name=family.name,
                writer=family.writer,
                questions=family.questions,
                states={
                    state: [s for s in sentences if part_of(s) == part]
                    for state, sentences in family.states.items()
                },
                neutral=[s for s in family.neutral if part_of(s) == part],
                pairs=[p for p in family.pairs if part_of(p.older + p.newer) == part],
            )
        )
    return cut


def behavioural_pairs(families: Sequence[Family], *, per_family: int, seed: int) -> list[Pair]:
    """Draws labelled pairs: other state (a conflict), same state, neutral, another family."""
    rng = random.Random(seed)
    drawn: list[Pair] = []
    for family in families:
        states = {label: s for label, s in family.states.items() if len(s) >= 2}
        if len(states) < 2:
            continue
        elsewhere = [
            s for f in families if f.name != family.name for v in f.states.values() for s in v
        ]
        for _ in range(per_family):
            question = rng.choice(family.questions)
            a, b = rng.sample(sorted(states), 2)
            one = rng.choice(states[a])
            drawn.append(Pair(question, one, rng.choice(states[b]), True, "behavioural/old-new"))
            same = rng.sample(states[a], 2)
            drawn.append(Pair(question, same[0], same[1], False, "behavioural/same-state"))
            if family.neutral:
                near = rng.choice(family.neutral)
                drawn.append(Pair(question, near, one, False, "behavioural/neighbour"))
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


class Draw:
    """Draws training rows for ever: ((texts, …), label), label None where only a teacher knows."""

    def __init__(self, families: Sequence[Family], extra: dict[str, list[Pair]], seed: int) -> None:
        self._rng = random.Random(seed)
        self._families = [f for f in families if sum(map(bool, f.states.values())) >= 2]
        self._sentences = [s for f in families for v in f.states.values() for s in v]
        pairs = [p for f in families for p in f.pairs]
        self._pools = {
            "explicit": [p for p in pairs if p.conflict],
            "lookalikes": [p for p in pairs if not p.conflict],
            **extra,
        }
        self._by_family = [f.pairs for f in families if len(f.pairs) > 1]

    def pairs(self, counts: dict[str, int]) -> list[tuple[tuple[str, ...], float | None]]:
        """Returns rows of the pair task: question, and the two texts in a fixed order."""
        drawn: list[tuple[str, str, str, float | None]] = []
        rng = self._rng
        for name, pool in self._pools.items():
            drawn += [
                (p.question, p.older, p.newer, float(p.conflict))
                for p in (rng.choices(pool, k=counts.get(name, 0)) if pool else ())
            ]
        for _ in range(counts["unrelated"]):
            a, b = rng.sample(self._pools["explicit"], 2)
            drawn.append(
                (a.question, a.older, rng.choice([b.newer, rng.choice(self._sentences)]), 0.0)
            )
        for _ in range(counts["behaviours"]):
            family = rng.choice(self._families)
            question = rng.choice([*family.questions, ""])
            label, other = rng.sample(sorted(k for k, v in family.states.items() if v), 2)
            one = rng.choice(family.states[label])
            near = [s for s in (*family.states[label], *family.neutral) if s != one]
            drawn.append((question, one, rng.choice(near), 0.0))
            drawn.append((question, one, rng.choice(self._sentences), 0.0))
            if counts.get("other states"):
                drawn.append((question, one, rng.choice(family.states[other]), 1.0))
        for _ in range(counts.get("unlabelled", 0)):
            a, b = rng.sample(rng.choice(self._by_family), 2)
            drawn.append(
                (
                    rng.choice([a.question, b.question, ""]),
                    a.older,
                    rng.choice([b.newer, b.older]),
                    None,
                )
            )
        return [((q, *sorted((a, b))), label) for q, a, b, label in drawn if a != b]

    def stances(self, count: int) -> list[tuple[tuple[str, ...], float | None]]:
        """Returns rows of the stance task: does the sentence speak for this answer?"""
        rows: list[tuple[tuple[str, ...], float | None]] = []
        rng = self._rng
        for _ in range(count):
            family = rng.choice(self._families)
            question = rng.choice(family.questions)
            labels = sorted(k for k, v in family.states.items() if v)
            own = rng.choice(labels)
            sentence = rng.choice(family.states[own])
            rows += [((stance(question, o), sentence), float(o == own)) for o in labels]
            option = stance(question, rng.choice(labels))
            if family.neutral:
                rows.append(((option, rng.choice(family.neutral)), 0.0))
            rows.append(((option, rng.choice(self._sentences)), 0.0))
        return rows


def stance(question: str, option: str) -> str:
    """Returns the text that a sentence is held against."""
    return f"{question} {option}"
