"""What a pool is to be generated for: attributes, their states, and the questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcmem.bench.data.rows import read_rows, text_in, texts_in
from gcmem.errors import InvalidInputError

NO_STATE = "none of these"
"""What a rater answers where no state follows; no label may be called so."""
KEYS = ("family", "attribute", "states", "questions", "invariants")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySpec:
    """An attribute of a person or thing: the states it can be in, and how one asks for it.

    `invariants` are facts close to the topic that stay true whatever the state is.
    """

    family: str
    attribute: str
    states: tuple[str, ...]
    questions: tuple[str, ...]
    invariants: tuple[str, ...] = ()


def load_spec(path: Path) -> tuple[FamilySpec, ...]:
    """Reads a specification, a JSON list or JSONL; a mistake is named with its place."""
    specs: dict[str, FamilySpec] = {}
    for place, row in read_rows(path):
        spec = _family(row, place)
        if spec.family in specs:
            raise InvalidInputError(f"{place}: the family {spec.family!r} is there twice")
        specs[spec.family] = spec
    if not specs:
        raise InvalidInputError(f"{path} has no family")
    return tuple(specs.values())


def _family(row: dict[str, Any], place: str) -> FamilySpec:
    for key in row:
        # A misspelt "invariants" would otherwise be found missing only after the money is spent.
        if key not in KEYS:
            raise InvalidInputError(f"{place}: unknown key {key!r}; there are {', '.join(KEYS)}")
    states = texts_in(row, "states", place=place, least=2)
    if NO_STATE in (state.casefold() for state in states):
        raise InvalidInputError(f"{place}: {NO_STATE!r} can't be a state, raters answer with it")
    return FamilySpec(
        family=text_in(row, "family", place=place),
        attribute=text_in(row, "attribute", place=place),
        states=states,
        questions=texts_in(row, "questions", place=place, least=1),
        invariants=texts_in(row, "invariants", place=place),
    )
