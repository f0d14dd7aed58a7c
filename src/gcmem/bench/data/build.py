"""Builds the datasets from the pool: in each instance a state changes without being named."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations

from gcmem.bench.data.counts import whole_numbers
from gcmem.bench.data.instances import BenchTurn, Instance, Kind, Subset, state_conflicts
from gcmem.bench.data.needs import Needs, check_pool
from gcmem.bench.data.pool import Family, Line, distractors, families
from gcmem.errors import InvalidInputError

SEED = 20260101
START = datetime(2025, 1, 6, 7, 30, tzinfo=UTC)
SEVERITY = {
    "pet": 1, "social": 1, "sleep": 2, "commute": 2, "fitness": 2, "residence": 3, "diet": 3,
    "housing": 3, "employment": 4, "relationship": 4, "finances": 4, "project": 4, "hosting": 5,
}  # fmt: skip
"""Harm of acting on the stale state, from 1 (a matter of taste) to 5 (a broken system)."""
UNKNOWN_SEVERITY = 3
NAMES = (
    "Ana", "Bastian", "Chidi", "Devika", "Elif", "Fabrice", "Goran", "Hanneke", "Imani", "Jonas",
    "Kaveh", "Lucia", "Marek", "Noor", "Otto", "Priya",
)  # fmt: skip
RATIOS = (1, 3, 10, 30, 50, 100)
SWEEP_INSTANCES = 84
SWEEP_DISTRACTORS = 35


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a chat dataset: the number of instances, and of turns by kind."""

    instances: int
    excluded_families: tuple[str, ...]
    old: tuple[int, float]
    """Total over all instances, and standard deviation per instance."""
    new: tuple[int, float]
    others: tuple[int, float]


SHAPES = {
    "chat-medium": Shape(48, ("hosting",), (1320, 14.9), (144, 1.2), (569, 1.7)),
    "chat-large": Shape(65, (), (1755, 13.4), (195, 1.1), (740, 1.7)),
}
MOST_OLD = 70
DATASETS = (*SHAPES, "mutation", "chat-hard")
NEEDS = {
    **dict.fromkeys(SHAPES, Needs(lines=MOST_OLD)),
    "mutation": Needs(lines=max(RATIOS)),
    # Three people: 12 turns of any role for the person asked about, 8 user turns for the others.
    "chat-hard": Needs(lines=20, user_lines=20, invariants=12, three_states=True),
}


def build(
    name: str, *, seed: int = SEED, pool: Sequence[Family] | None = None
) -> tuple[Instance, ...]:
    """Builds a dataset by name; the same seed and pool always give the same instances.

    `pool` defaults to the shipped one. Raises InvalidInputError if it has too few lines for the
    dataset; distractors replace missing invariants.
    """
    if name not in DATASETS:
        raise InvalidInputError(f"no dataset {name!r}: pass one of {', '.join(DATASETS)}")
    excluded = SHAPES[name].excluded_families if name in SHAPES else ()
    given = families() if pool is None else pool
    chosen = tuple(family for family in given if family.name not in excluded)
    check_pool(chosen, NEEDS[name], name=name)
    if name in SHAPES:
        return tuple(_chat(name, SHAPES[name], chosen, seed))
    return tuple(_sweep(chosen, seed) if name == "mutation" else _hard(chosen, seed))


def _chat(name: str, shape: Shape, pool: Sequence[Family], seed: int) -> Iterator[Instance]:
    rng = random.Random(f"{name} {seed}")
    old = whole_numbers(shape.instances, *shape.old, least=5, most=MOST_OLD, rng=rng)
    new = whole_numbers(shape.instances, *shape.new, least=1, most=6, rng=rng)
    others = whole_numbers(shape.instances, *shape.others, least=8, most=16, rng=rng)
    changes = _changes(pool, rng)
    for n in range(shape.instances):
        family, states = next(changes)
        draft = _Draft(family, rng)
        invariants = min(3, others[n] // 4)
        draft.show(states[0], old[n], "old")
        draft.show(states[1], new[n], "new")
        draft.scatter(others[n] - invariants, invariants)
        yield draft.instance(f"{name}-{n:03}", states[-1])


def _sweep(pool: Sequence[Family], seed: int) -> Iterator[Instance]:
    for ratio in RATIOS:
        rng = random.Random(f"mutation {ratio} {seed}")
        changes = _changes(pool, rng)
        for n in range(SWEEP_INSTANCES):
            family, states = next(changes)
            draft = _Draft(family, rng)
            draft.show(states[0], ratio, "old")
            draft.show(states[1], 1, "new")
            draft.scatter(SWEEP_DISTRACTORS - 5, 5)
            yield draft.instance(f"mutation-{ratio:03}-{n:02}", states[1], ratio=ratio)


def _hard(pool: Sequence[Family], seed: int) -> Iterator[Instance]:
    each = 16
    makers: dict[Subset, Callable[[_Draft, Sequence[str]], str]] = {
        "chained": _chained,
        "returning": _returning,
        "concurrent": _concurrent,
        "late": _late,
        "single": _invariant,
    }
    for subset, make in makers.items():
        rng = random.Random(f"chat-hard {subset} {seed}")
        changes = _changes([f for f in pool if subset != "chained" or len(f.states) > 2], rng)
        for n in range(each):
            family, states = next(changes)
            draft = _Draft(family, rng)
            answer = make(draft, states)
            yield draft.instance(f"chat-hard-{subset}-{n:02}", answer, subset=subset)


def _chained(draft: _Draft, states: Sequence[str]) -> str:
    """A → B → C: the superseding state is itself superseded."""
    third = next(s for s in sorted(draft.family.states) if s not in states)
    for state, count, kind in ((states[0], 14, "old"), (states[1], 6, "old"), (third, 3, "new")):
        draft.show(state, count, kind)  # type: ignore[arg-type]
    draft.scatter(12, 3)
    return third


def _returning(draft: _Draft, states: Sequence[str]) -> str:
    """A → B → A: the first turns of A are still old, because B came after them."""
    draft.show(states[0], 12, "old")
    draft.show(states[1], 8, "old")
    draft.show(states[0], 3, "new")
    draft.scatter(12, 3)
    return states[0]


def _concurrent(draft: _Draft, states: Sequence[str]) -> str:
    """Three people with the same attribute in one chat; only the one asked about changes."""
    draft.name_people(3)
    draft.show(states[0], 12, "old")
    draft.show(states[1], 3, "new")
    draft.others_show(states[0], 8)
    draft.others_show(states[1], 4)
    draft.scatter(8, 2)
    return states[1]


def _late(draft: _Draft, states: Sequence[str]) -> str:
    """Some turns of the old state are recorded after the new state, but happened before it."""
    draft.show(states[0], 16, "old")
    draft.show(states[1], 3, "new")
    draft.scatter(10, 3)
    draft.arrive_late(4)
    return states[1]


def _invariant(draft: _Draft, states: Sequence[str]) -> str:
    """Many old facts near the topic are still true."""
    draft.show(states[0], 14, "old")
    draft.show(states[1], 3, "new")
    draft.scatter(6, 12)
    return states[1]


def _changes(
    chosen: Sequence[Family], rng: random.Random
) -> Iterator[tuple[Family, tuple[str, str]]]:
    """Yields changes endlessly: families take turns, and none repeats before all are used."""
    left: dict[str, list[tuple[str, str]]] = {f.name: [] for f in chosen}
    while True:
        for family in rng.sample(chosen, len(chosen)):
            if not left[family.name]:
                pairs = list(permutations(sorted(family.states), 2))
                left[family.name] = rng.sample(pairs, len(pairs))
            yield family, left[family.name].pop()


class _Draft:
    """Builds one instance: draws lines without repeats and orders them."""

    def __init__(self, family: Family, rng: random.Random) -> None:
        self.family = family
        self._rng = rng
        self._shown: list[tuple[Kind, str | None, Line]] = []
        self._aside: list[tuple[Kind, str | None, Line]] = []
        self._left = {s: rng.sample(lines, len(lines)) for s, lines in family.states.items()}
        self._people: list[str] = []
        self._late = 0

    def show(self, state: str, count: int, kind: Kind) -> None:
        """Appends turns that show a state."""
        self._shown += [(kind, state, self._left[state].pop()) for _ in range(count)]

    def scatter(self, count: int, invariants: int) -> None:
        """Adds distractors and invariants at random places in the stream."""
        missing = max(0, invariants - len(self.family.invariants))
        lines = self._rng.sample(distractors(), count + missing)
        self._aside += [("distractor", None, line) for line in lines]
        facts = self._rng.sample(self.family.invariants, invariants - missing)
        self._aside += [("invariant", None, Line("user", fact)) for fact in facts]

    def name_people(self, count: int) -> None:
        """Gives the chat several people; the question is about the first."""
        self._people = self._rng.sample(NAMES, count)

    def others_show(self, state: str, count: int) -> None:
        """Adds turns of the other people at random places in the stream."""
        lines = [line for line in self._left[state] if line.role == "user"][:count]
        self._left[state] = [line for line in self._left[state] if line not in lines]
        self._aside += [("other", state, line) for line in lines]

    def arrive_late(self, count: int) -> None:
        """Records `count` old turns after everything else."""
        self._late = count

    def instance(
        self, instance_id: str, answer: str, *, subset: Subset = "single", **metadata: int
    ) -> Instance:
        """Returns the finished instance."""
        rng = self._rng
        order = self._shown.copy()
        # Anywhere in the stream, so that a distractor's place says nothing about the states.
        for row in self._aside:
            order.insert(rng.randint(0, len(order)), row)
        turns = tuple(self._turns(order))
        entity = self._people[0] if self._people else "the user"
        question = rng.choice(self.family.questions).replace("the user", entity)
        return Instance(
            id=instance_id,
            family=self.family.name,
            question=question,
            turns=turns,
            options=tuple(sorted(self.family.states)),
            answer=answer,
            entity=entity,
            severity=SEVERITY.get(self.family.name, UNKNOWN_SEVERITY),
            subset=subset,
            conflicts=state_conflicts(turns),
            metadata=metadata,
        )

    def _turns(self, order: list[tuple[Kind, str | None, Line]]) -> Iterator[BenchTurn]:
        rng = self._rng
        at = START + timedelta(days=rng.randint(0, 60))
        old = [n for n, (kind, _, _) in enumerate(order) if kind == "old"]
        late = dict(zip(rng.sample(old, self._late), range(self._late), strict=True))
        for n, (kind, state, line) in enumerate(order):
            # A session has a few turns; sessions are days apart.
            at += timedelta(minutes=rng.randint(1, 4))
            if rng.random() < 0.3:
                at += timedelta(days=rng.randint(1, 5), minutes=rng.randint(0, 600))
            yield BenchTurn(
                id=f"t{n:03}",
                text=line.text,
                kind=kind,
                at=at,
                role=line.role,
                speaker=self._speaker(kind, line),
                state=state,
                recorded=len(order) + late[n] if n in late else n,
            )

    def _speaker(self, kind: Kind, line: Line) -> str:
        if not self._people or line.role == "assistant":
            return line.role
        return self._rng.choice(self._people[1:]) if kind == "other" else self._people[0]
