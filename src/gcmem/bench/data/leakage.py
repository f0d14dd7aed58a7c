"""Measures leakage: do turns name the state, and does wording alone separate old from new?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.bench.data.pool import Family
from gcmem.bench.data.wording import stem, words

FOLDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Leakage:
    """How much the wording of a family gives away.

    `named` is the share of turns showing a state that contain its label or a near-synonym.
    `told_apart` is the balanced accuracy of a bag-of-words classifier for old or new, trained on
    other instances; 0.5 is chance.
    """

    family: str
    turns: int
    named: float
    told_apart: float
    examples: tuple[str, ...] = ()


def leakage(instances: Sequence[Instance], pool: Iterable[Family]) -> list[Leakage]:
    """Returns one row per family, and a last row for the whole dataset (family "all")."""
    known = {family.name: family for family in pool}
    guesses = _guess_new(instances)
    rows = []
    shown: dict[str, list[tuple[BenchTurn, bool]]] = defaultdict(list)
    leaks: dict[str, list[str]] = defaultdict(list)
    for instance in instances:
        family = known.get(instance.family)
        names = phrases_by_state(family) if family else {}
        for turn in instance.of_kind("old", "new"):
            shown[instance.family].append((turn, guesses[instance.id, turn.id]))
            if names_state(turn.text, names.get(turn.state or "", ())):
                leaks[instance.family].append(turn.text)
    for name, turns in sorted(shown.items()):
        rows.append(_row(name, turns, leaks[name]))
    rows.append(_row("all", list(chain(*shown.values())), list(chain(*leaks.values()))))
    return rows


def _row(name: str, turns: list[tuple[BenchTurn, bool]], leaks: list[str]) -> Leakage:
    rates = [
        sum(guess == (kind == "new") for turn, guess in turns if turn.kind == kind)
        / max(1, sum(turn.kind == kind for turn, _ in turns))
        for kind in ("old", "new")
    ]
    return Leakage(
        family=name,
        turns=len(turns),
        named=round(len(leaks) / max(1, len(turns)), 4),
        told_apart=round(sum(rates) / 2, 4),
        examples=tuple(dict.fromkeys(leaks))[:5],
    )


def phrases_by_state(family: Family) -> dict[str, tuple[str, ...]]:
    """Returns the words and phrases that would name each state."""
    return {state: (state, *family.synonyms.get(state, ())) for state in family.states}


def names_state(text: str, phrases: Iterable[str]) -> bool:
    """Returns whether a text contains one of the phrases, ignoring word endings."""
    said = f" {' '.join(map(stem, words(text)))} "
    return any(f" {' '.join(map(stem, words(phrase)))} " in said for phrase in phrases)


def _guess_new(instances: Sequence[Instance]) -> dict[tuple[str, str], bool]:
    """Returns for each turn whether naive Bayes, trained on other instances, calls it new."""
    guesses: dict[tuple[str, str], bool] = {}
    for fold in range(FOLDS):
        train = [i for n, i in enumerate(instances) if n % FOLDS != fold]
        counts = {kind: _words(train, kind) for kind in ("old", "new")}
        size = len(set(counts["old"]) | set(counts["new"])) or 1
        totals = {kind: found.total() for kind, found in counts.items()}
        for instance in instances[fold::FOLDS]:
            for turn in instance.of_kind("old", "new"):
                # No prior: the majority of old turns must not help.
                margin = sum(
                    math.log((counts["new"][word] + 1) / (totals["new"] + size))
                    - math.log((counts["old"][word] + 1) / (totals["old"] + size))
                    for word in words(turn.text)
                )
                guesses[instance.id, turn.id] = margin > 0
    return guesses


def _words(instances: Sequence[Instance], kind: str) -> Counter[str]:
    return Counter(
        word
        for instance in instances
        for turn in instance.turns
        if turn.kind == kind
        for word in words(turn.text)
    )
