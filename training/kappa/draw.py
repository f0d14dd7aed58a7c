"""Draws training rows of all tasks, each draw of the same mixture."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from training.kappa.data import CONTRASTS, Fact, Family, Pair
from training.kappa.notebooks import Notebook
from training.kappa.tasks import MAX_OPTIONS, UNKNOWN, AnswerRow, PairRow, StanceRow

NO_STANCE = frozenset(
    f"lookalikes/{kind}"
    for kind in ("other_person", "hypothetical", "reported", "plan", "question", "smalltalk")
)
"""Look-alikes whose newer line is on the topic and says nothing about the person's own state."""


SAME_SLOT = frozenset({"conflict", "restated"})
OTHER_SLOT = frozenset({"other_slot", "other_person"})
"""Kinds of contrast whose newer line does, or does not, answer the older one's question."""
NOTED_SHARES = (0.3, 0.3, 0.4)
"""What share of the pairs of notebooks conflict, say the same twice, and speak of two things."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """How many rows of each source are drawn at a time."""

    explicit: int = 90
    lookalikes: int = 90
    contrast: int = 240
    plain: int = 280
    shown: int = 130
    facts: int = 60
    noted_pairs: int = 170
    nli: int = 50
    mined: int = 160
    statebench: int = 8
    unrelated: int = 120
    remarks: int = 40
    same_state: int = 130
    old_new: int = 40
    clear_same_state: int = 190
    clear_old_new: int = 200
    neighbours: int = 160
    clear_neighbours: int = 80
    said: int = 60
    recombined: int = 240
    crossed: int = 80
    stances: int = 260
    off_topic: int = 100
    hearsay: int = 50
    noted_stances: int = 160
    answers: int = 90


class Draw:
    """Draws rows for all tasks from the training part.

    Labelled pairs are few and soon known by heart. Lines that were written about one thing, put
    together anew, give many more: what those say only a teacher knows. So it is with NLI pairs,
    where any two scenes count as a contradiction.
    """

    def __init__(
        self,
        families: Sequence[Family],
        pools: dict[str, list[Pair]],
        relations: Sequence[Sequence[Fact]],
        remarks: Sequence[Sequence[str]],
        notebooks: Sequence[Notebook],
        *,
        seed: int,
    ) -> None:
        self._rng = random.Random(seed)
        self._families = [f for f in families if sum(map(bool, f.states.values())) >= 2]
        # A family of many lines comes up more often than one of few, and each of its lines less.
        self._weights = list(accumulate(size_of(f) ** 0.5 for f in self._families))
        self._sentences = [s for f in families for v in f.states.values() for s in v]
        self._labels = sorted({label for f in families for label in f.states})
        pairs = [p for f in families for p in f.pairs]
        self._pools = {
            "explicit": [p for p in pairs if p.conflict],
            "lookalikes": [p for p in pairs if not p.conflict],
            **{name: pool for name, pool in pools.items() if pool},
        }
        self._no_stance = {
            f.name: f.not_theirs + [p.newer for p in f.pairs if p.category in NO_STANCE]
            for f in self._families
        }
        self._paired = [f for f in self._families if f.pairs]
        self._clear = [f for f in self._families if f.clear]
        self._outspoken = [f for f in self._families if sum(map(bool, f.says.values())) >= 2]
        self._relations = [facts for facts in relations if len(facts) > 1]
        self._remarks = [lines for lines in remarks if lines]
        groups: dict[str, list[Pair]] = {}
        for pair in (pair for category in CONTRASTS for pair in pools.get(category, [])):
            groups.setdefault(pair.group, []).append(pair)
        self._contrasts = [pairs for pairs in groups.values() if pairs[0].question]
        self._together = [g for g in (*(f.pairs for f in families), *groups.values()) if len(g) > 1]
        self._written = list(accumulate(map(len, self._together)))
        self._notebooks = notebooks
        self._topics = [
            [group for f in families if (group := f.pairs)],
            list(groups.values()),
            [notebook.pairs() for notebook in notebooks],
        ]

    def pairs(self, mixture: Mixture) -> list[PairRow]:
        """Returns rows of the pair task; the two texts stand in a fixed order."""
        rng = self._rng
        drawn: list[tuple[str, str, str, float | None]] = []
        for name, pool in self._pools.items():
            drawn += [
                (p.question, p.older, p.newer, None if name == "nli" else float(p.conflict))
                for p in rng.choices(pool, k=getattr(mixture, name))
            ]
        drawn += [self._facts() for _ in range(mixture.facts)]
        drawn += [self._remark() for _ in range(mixture.remarks)]
        drawn += [self._unrelated() for _ in range(mixture.unrelated)]
        drawn += [self._noted_pair() for _ in range(mixture.noted_pairs)]
        for behaviours, count, clear in (
            (self._same_state, mixture.same_state, mixture.clear_same_state),
            (self._old_new, mixture.old_new, mixture.clear_old_new),
            (self._neighbours, mixture.neighbours, mixture.clear_neighbours),
        ):
            families = [self._family() for _ in range(count)] + rng.choices(self._clear, k=clear)
            drawn += [behaviours(family) for family in families]
        drawn += [self._recombined() for _ in range(mixture.recombined)]
        drawn += [self._crossed() for _ in range(mixture.crossed)]
        drawn += [self._said() for _ in range(mixture.said)]
        return [PairRow((q, min(a, b), max(a, b)), y) for q, a, b, y in drawn if a != b]

    def _recombined(self) -> tuple[str, str, str, None]:
        """Two lines about one thing that were not written for each other."""
        rng = self._rng
        a, b = rng.sample(rng.choices(self._together, cum_weights=self._written)[0], 2)
        question = rng.choice([a.question, b.question, ""])
        if a.older == b.older:  # of one contrast: the older line with either is labelled
            return question, a.newer, b.newer, None
        return question, rng.choice([a.older, a.newer]), rng.choice([b.older, b.newer]), None

    def _crossed(self) -> tuple[str, str, str, None]:
        """A line of a family's pairs, and a behaviour or another line about the same thing."""
        rng = self._rng
        family = rng.choice(self._paired)
        pair = rng.choice(family.pairs)
        lines = rng.choice([*family.states.values(), family.neutral])
        question = rng.choice([pair.question, rng.choice(family.questions), ""])
        shown = rng.choice(lines or rng.choice([v for v in family.states.values() if v]))
        return question, rng.choice([pair.older, pair.newer]), shown, None

    def _remark(self) -> tuple[str, str, str, float]:
        """A short line, against one about something else, or a longer text."""
        rng = self._rng
        one, other = (rng.choice(lines) for lines in rng.sample(self._remarks, 2))
        pair = rng.choice(self._pools["explicit"])
        fact = rng.choice(rng.choice(self._relations))
        text = rng.choice([other, other, pair.older, pair.newer, fact.first])
        return rng.choice([pair.question, fact.question, "", ""]), one, text, 0.0

    def _facts(self) -> tuple[str, str, str, float]:
        rng = self._rng
        fact, other = rng.sample(rng.choice(self._relations), 2)
        question = rng.choice([fact.question, fact.question, ""])
        stated = rng.choice([fact.first, fact.again])
        kind = rng.random()
        if kind < 0.45:
            return question, stated, fact.second, float(fact.single)
        if kind < 0.6:
            return question, fact.first, fact.again, 0.0
        if kind < 0.75:
            other = rng.choice(rng.choice(self._relations))
            if other.relation == fact.relation:
                return question, fact.first, fact.again, 0.0
        text = rng.choice([other.first, other.again, other.second])
        return question, rng.choice([stated, fact.second]), text, 0.0

    def _unrelated(self) -> tuple[str, str, str, float]:
        """Two lines about two things, or a behaviour instead of one of them."""
        rng = self._rng
        one, other = (rng.choice(rng.choice(self._topics)) for _ in range(2))
        pair, stranger = rng.choice(one), rng.choice(other)
        text = rng.choice([stranger.older, stranger.newer])
        if one is other or rng.random() < 0.3:
            text = rng.choice(self._sentences)
        return pair.question, rng.choice([pair.older, pair.newer]), text, 0.0

    def _noted_pair(self) -> tuple[str, str, str, float]:
        """Two lines of a notebook: of one slot and two values, of one value, or of two slots."""
        rng = self._rng
        notebook = rng.choice(self._notebooks)
        slot = rng.choice(sorted(notebook.questions))
        line = rng.choice(notebook.about(slot))
        near = [other for other in notebook.lines if other is not line]
        changed = [other for other in near if line.contradicts(other)]
        same = [other for other in near if other.slot == slot and other.value == line.value]
        others = [other for other in near if other.slot != slot]
        other = rng.choice(rng.choices([changed, same or others, others], NOTED_SHARES)[0])
        question = rng.choice([notebook.questions[slot]] * 3 + [""])
        return question, line.text, other.text, float(line.contradicts(other))

    def _family(self) -> Family:
        return self._rng.choices(self._families, cum_weights=self._weights)[0]

    def _states(self, family: Family) -> tuple[str, list[str], list[str]]:
        """Returns a question about a family, and the behaviours of two of its states."""
        rng = self._rng
        question = rng.choice(family.questions) if rng.random() < 0.9 else ""
        one, other = rng.sample([v for v in family.states.values() if v], 2)
        return question, one, other

    def _said(self) -> tuple[str, str, str, float]:
        """A state said outright, against another or the same one, said or shown by behaviour."""
        rng = self._rng
        family = rng.choice(self._outspoken)
        question = rng.choice([rng.choice(family.questions), ""])
        one, other = rng.sample(sorted(k for k, v in family.says.items() if v), 2)
        stated = rng.choice(family.says[one])
        if rng.random() < 0.15 and family.not_theirs:
            return question, stated, rng.choice(family.not_theirs), 0.0
        state = rng.choice([one, other])
        lines = rng.choice([family.says[state], family.states[state] or family.says[state]])
        return question, stated, rng.choice(lines), float(state == other)

    def _same_state(self, family: Family) -> tuple[str, str, str, float]:
        question, one, _ = self._states(family)
        return question, self._rng.choice(one), self._rng.choice(one), 0.0

    def _old_new(self, family: Family) -> tuple[str, str, str, float]:
        """Behaviours of two states.

        Without as many of `_neighbours` they teach the scorer to see conflicts in any chat.
        """
        question, one, other = self._states(family)
        asked = question or family.questions[0]  # without a question they are only two lines
        return asked, self._rng.choice(one), self._rng.choice(other), 1.0

    def _neighbours(self, family: Family) -> tuple[str, str, str, float]:
        """A behaviour, and a line near its topic, or of somebody else, or about another thing."""
        rng = self._rng
        question, one, _ = self._states(family)
        near = rng.choice([family.neutral, family.not_theirs, self._sentences, self._sentences])
        return question, rng.choice(one), rng.choice(near or self._sentences), 0.0

    def answers(self, mixture: Mixture) -> list[AnswerRow]:
        """Returns rows of the answer task: does the sentence answer the question?"""
        sources = [
            self._answer_in_contrast,
            self._answer_in_facts,
            self._answer_in_family,
            self._answer_in_notebook,
        ]
        rows = [
            AnswerRow(*self._rng.choices(sources, [3, 2, 2, 2])[0]())
            for _ in range(mixture.answers)
        ]
        return [row for row in rows if row.question]

    def _answer_in_notebook(self) -> tuple[str, str, float]:
        rng = self._rng
        notebook = rng.choice(self._notebooks)
        slot = rng.choice(sorted(notebook.questions))
        label = rng.random() < 0.5
        lines = [line.text for line in notebook.lines if (line.slot == slot) == label]
        return notebook.questions[slot], rng.choice(lines), float(label)

    def _answer_in_contrast(self) -> tuple[str, str, float]:
        rng = self._rng
        group = rng.choice(self._contrasts)
        right = [group[0].older, *(p.newer for p in group if kind_of(p) in SAME_SLOT)]
        wrong = [p.newer for p in group if kind_of(p) in OTHER_SLOT]
        label = float(rng.random() < 0.5 or not wrong)
        return group[0].question, rng.choice(right if label else wrong), label

    def _answer_in_facts(self) -> tuple[str, str, float]:
        rng = self._rng
        fact, other = rng.sample(rng.choice(self._relations), 2)
        label = float(rng.random() < 0.5)
        if not label and rng.random() < 0.4:
            other = rng.choice(rng.choice(self._relations))
        stated = fact if label else other
        text = rng.choice([stated.first, stated.again, stated.second])
        return fact.question, text, float(stated is fact)

    def _answer_in_family(self) -> tuple[str, str, float]:
        rng = self._rng
        family = self._family()
        question = rng.choice(family.questions)
        lines = [s for v in (*family.says.values(), *family.states.values()) for s in v]
        if rng.random() < 0.5:
            return question, rng.choice(lines), 1.0
        near = rng.choice([family.neutral, self._sentences])
        return question, rng.choice(near or self._sentences), 0.0

    def stances(self, mixture: Mixture) -> list[StanceRow]:
        """Returns rows of the stance task: which option does the sentence speak for, if any?"""
        rng = self._rng
        rows = [self._stance() for _ in range(mixture.stances)]
        for _ in range(mixture.off_topic):
            family, other = rng.sample(self._families, 2)
            elsewhere = rng.choice([v for v in other.states.values() if v])
            near = rng.choice([family.neutral, self._no_stance[family.name], elsewhere])
            sentence = rng.choice(near or elsewhere)
            # Options may have been induced from the question, and wrongly: then none is right.
            asked = rng.choices([family, other], [0.85, 0.15])[0]
            if asked is other:
                sentence = rng.choice(rng.choice([v for v in family.states.values() if v]))
            options = self._options(asked.states)
            rows.append(StanceRow(rng.choice(family.questions), options, sentence, None))
        rows += [self._hearsay() for _ in range(mixture.hearsay)]
        return rows + [self._noted_stance() for _ in range(mixture.noted_stances)]

    def _noted_stance(self) -> StanceRow:
        """A line of a notebook against the values of a slot, its own or another."""
        rng = self._rng
        notebook = rng.choice(self._notebooks)
        slot = rng.choice(sorted(notebook.questions))
        lines = notebook.about(slot) if rng.random() < 0.7 else notebook.lines
        line = rng.choice(lines)
        options = self._options(
            notebook.values(slot), right=line.value if line.slot == slot else None
        )
        known = line.slot == slot and line.value in options
        return StanceRow(
            notebook.questions[slot],
            options,
            line.text,
            options.index(str(line.value)) if known else None,
        )

    def _hearsay(self) -> StanceRow:
        """A line of a family's pairs, of which no one has said which state it speaks for."""
        rng = self._rng
        family = rng.choice(self._paired)
        pair = rng.choice(family.pairs)
        line = rng.choice([pair.older, pair.newer])
        options = self._options(family.states)
        return StanceRow(rng.choice(family.questions), options, line, UNKNOWN)

    def _stance(self) -> StanceRow:
        rng = self._rng
        family = self._family()
        label = rng.choice(sorted(k for k, v in family.states.items() if v))
        options = self._options(family.states, right=label)
        said = family.says.get(label)
        lines = said if said and rng.random() < 0.2 else family.states[label]
        return StanceRow(
            rng.choice(family.questions),
            options,
            rng.choice(lines),
            options.index(label) if label in options else None,
        )

    def _options(self, states: Iterable[str], *, right: str | None = None) -> tuple[str, ...]:
        """Returns states in any order; now and then two alone, or one too few, or a stranger."""
        rng = self._rng
        options = sorted(states)
        if len(options) > 2 and rng.random() < 0.1:
            options.remove(rng.choice(options))
        elif len(options) > 2 and right is not None and rng.random() < 0.3:
            options = [right, rng.choice([option for option in options if option != right])]
        while len(options) < MAX_OPTIONS and rng.random() < 0.15:
            stranger = rng.choice(self._labels)
            if stranger not in options:
                options.append(stranger)
        rng.shuffle(options)
        return tuple(options)


def size_of(family: Family) -> int:
    """Returns how many behaviours were written about a family."""
    return sum(map(len, family.states.values()))


def kind_of(pair: Pair) -> str:
    """Returns the kind of a pair without its source."""
    return pair.category.partition("/")[2]
