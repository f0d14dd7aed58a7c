"""The pool that the datasets are drawn from: the hand-written one, or one of the user's own."""

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
    """One turn of a chat, before it has a time: who says it, and what."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Family:
    """An attribute with states that exclude each other, and what shows each state."""

    name: str
    attribute: str
    questions: tuple[str, ...]
    states: dict[str, tuple[Line, ...]]
    statements: dict[str, tuple[str, ...]]
    """The same states said outright; for experiments that need sentences close to the question."""
    invariants: tuple[str, ...]
    synonyms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Words that would name a state, beside its label; for the leakage rater."""


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """Returns the attribute families, always in the same order."""
    return tuple(
        _family(row, place=f"families.jsonl, line {number}")
        for number, row in enumerate(_rows("families.jsonl"), 1)
    )


def load_families(path: Path) -> tuple[Family, ...]:
    """Reads a pool of the user's own, in the format of the shipped one; a mistake has its place.

    `statements`, `invariants` and `synonyms` may be absent, and a state may be short of lines: what
    a dataset can't do without, it says when it is built.
    """
    found: dict[str, Family] = {}
    for place, row in read_rows(path):
        family = _family(row, place=place)
        if family.name in found:
            raise InvalidInputError(f"{place}: the family {family.name!r} is there twice")
        found[family.name] = family
    if not found:
        raise InvalidInputError(f"{path} has no family")
    return tuple(found.values())


@lru_cache(maxsize=1)
def distractors() -> tuple[Line, ...]:
    """Returns turns that imply nothing about any of the families."""
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
    """Returns the texts of every label; without the key there are none."""
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
