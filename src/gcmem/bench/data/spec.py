"""The input for generating a pool: attributes, their states, and questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcmem.bench.data.rows import read_rows, text_in, texts_in
from gcmem.errors import InvalidInputError

NO_STATE = "none of these"
"""The rater's answer if no state follows; not allowed as a label."""
KEYS = ("family", "attribute", "states", "questions", "invariants")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySpec:
    """An attribute of a person or thing, its possible states, and questions about it.

    `invariants` are facts near the topic that are true in every state.
    """

    family: str
    attribute: str
    states: tuple[str, ...]
    questions: tuple[str, ...]
    invariants: tuple[str, ...] = ()


def load_spec(path: Path) -> tuple[FamilySpec, ...]:
    """Reads a specification (JSON list or JSONL); errors name the entry or line."""
    specs: dict[str, FamilySpec] = {}
    for place, row in read_rows(path):
        spec = _family(row, place)
        if spec.family in specs:
            raise InvalidInputError(f"{place}: the family {spec.family!r} appears twice")
        specs[spec.family] = spec
    if not specs:
        raise InvalidInputError(f"{path} has no family")
    return tuple(specs.values())


def _family(row: dict[str, Any], place: str) -> FamilySpec:
    for key in row:
        # A misspelt "invariants" would otherwise be noticed only after the money is spent.
        if key not in KEYS:
            raise InvalidInputError(f"{place}: unknown key {key!r}; known: {', '.join(KEYS)}")
    states = texts_in(row, "states", place=place, least=2)
    if NO_STATE in (state.casefold() for state in states):
        raise InvalidInputError(f"{place}: {NO_STATE!r} can't be a state: raters answer with it")
    return FamilySpec(
        family=text_in(row, "family", place=place),
        attribute=text_in(row, "attribute", place=place),
        states=states,
        questions=texts_in(row, "questions", place=place, least=1),
        invariants=texts_in(row, "invariants", place=place),
    )
