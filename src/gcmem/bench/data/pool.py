"""The lines that datasets are built from: the shipped pool, or the user's own."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from gcmem.bench.data.rows import read_rows, text_in, texts_in
from gcmem.errors import InvalidInputError

ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Line:
    """The role and text of a chat turn, without a time."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Family:
    """An attribute with mutually exclusive states, and the lines that show each state."""

    name: str
    attribute: str
    questions: tuple[str, ...]
    states: dict[str, tuple[Line, ...]]
    statements: dict[str, tuple[str, ...]]
    """Sentences that name each state; for experiments that need text close to the question."""
    invariants: tuple[str, ...]
    synonyms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Words besides the label that name a state; used to measure leakage."""


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """Returns the attribute families, always in the same order."""
    return tuple(
        _family(row, place=f"families.jsonl, line {number}")
        for number, row in enumerate(_rows("families.jsonl"), 1)
    )


def load_families(path: Path) -> tuple[Family, ...]:
    """Reads a pool in the format of the shipped one; errors name the line.

    `statements`, `invariants` and `synonyms` are optional. `build` checks whether a state has
    enough lines.
    """
    found: dict[str, Family] = {}
    for place, row in read_rows(path):
        family = _family(row, place=place)
        if family.name in found:
            raise InvalidInputError(f"{place}: the family {family.name!r} appears twice")
        found[family.name] = family
    if not found:
        raise InvalidInputError(f"{path} has no family")
    return tuple(found.values())


@lru_cache(maxsize=1)
def distractors() -> tuple[Line, ...]:
    """Returns lines that imply nothing about any family."""
    return tuple(Line(row["role"], row["text"]) for row in _rows("distractors.jsonl"))


def _rows(name: str) -> list[dict[str, Any]]:
    text = (files(__package__) / "lines" / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _family(row: dict[str, Any], *, place: str) -> Family:
    states = _states(row, "states", place=place)
    if len(states) < 2:
        raise InvalidInputError(f"{place}: 'states' needs two or more labels, not {len(states)}")
    return Family(
        name=text_in(row, "family", place=place),
        attribute=text_in(row, "attribute", place=place),
        questions=texts_in(row, "questions", place=place, least=1),
        states={
            label: _lines(lines, place=f"{place}: {label!r}") for label, lines in states.items()
        },
        statements=_texts(row, "statements", place=place),
        invariants=texts_in(row, "invariants", place=place),
        synonyms=_texts(row, "synonyms", place=place),
    )


def _texts(row: dict[str, Any], key: str, *, place: str) -> dict[str, tuple[str, ...]]:
    """Returns the texts by label; empty if the key is missing."""
    found = _states(row, key, place=place) if key in row else {}
    return {label: texts_in(found, label, place=f"{place}: {key!r}") for label in found}


def _states(row: dict[str, Any], key: str, *, place: str) -> dict[str, list[Any]]:
    states = row.get(key)
    if not isinstance(states, dict) or not all(isinstance(v, list) for v in states.values()):
        raise InvalidInputError(f"{place}: {key!r} must be an object of label: list")
    if not all(label.strip() for label in states):
        raise InvalidInputError(f"{place}: {key!r} has an empty label")
    return states


def _lines(rows: list[Any], *, place: str) -> tuple[Line, ...]:
    lines = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or row.get("role") not in ROLES:
            raise InvalidInputError(
                f"{place} {number}: a line needs a 'text', and a 'role' of {' or '.join(ROLES)}"
            )
        lines.append(Line(row["role"], text_in(row, "text", place=f"{place} {number}")))
    if len({line.text for line in lines}) < len(lines):
        raise InvalidInputError(f"{place} has the same line twice")
    return tuple(lines)
