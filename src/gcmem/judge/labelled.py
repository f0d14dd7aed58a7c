"""Labelled pairs and sets, used to measure oracles."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from gcmem.errors import InvalidInputError
from gcmem.times import parse_time
from gcmem.types import Candidate, CandidateSet, Chunk

T = TypeVar("T")

SHIPPED_PAIRS = Path(__file__).parents[1] / "models" / "kappa" / "test_pairs.jsonl"
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """Two texts, the question asked, and whether the texts conflict."""

    older: str
    newer: str
    conflict: bool
    question: str = ""
    category: str = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """A candidate set with its known conflicts and the ids of chunks that must be kept."""

    candidates: CandidateSet
    conflicts: tuple[tuple[str, str], ...]
    must_keep: tuple[str, ...]


def load_pairs(path: Path) -> list[LabelledPair]:
    """Reads JSONL: question, older, newer, conflict, category."""
    return _read(path, _pair)


def load_sets(path: Path) -> list[LabelledSet]:
    """Reads JSONL: question, options, turns [{id, at, speaker, text}], conflicts, must_keep."""
    return _read(path, _labelled_set)


def _read(path: Path, parse: Callable[[Any], T]) -> list[T]:
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"can't read {path}: {error}") from None
    parsed = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("not a JSON object")
            parsed.append(parse(row))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{error} is missing" if type(error) is KeyError else str(error)
            raise InvalidInputError(f"{path}, line {number}: {reason}") from None
    return parsed


def _pair(row: Any) -> LabelledPair:
    if not isinstance(row["conflict"], bool):
        raise ValueError("conflict must be true or false")
    return LabelledPair(
        older=_text(row["older"], "older"),
        newer=_text(row["newer"], "newer"),
        conflict=row["conflict"],
        question=_text(row.get("question") or " ", "question").strip(),
        category=_text(row.get("category") or "all", "category"),
    )


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a non-empty string, not {value!r}")
    return value


def _labelled_set(row: Any) -> LabelledSet:
    items = tuple(
        Candidate(
            chunk=Chunk(
                id=str(turn["id"]),
                text=_text(turn["text"], "text"),
                at=parse_time(turn["at"]),
                seq=number,
                speaker=str(turn.get("speaker") or "user"),
            ),
            relevance=1.0,
            origin="mtm",
        )
        for number, turn in enumerate(row["turns"], 1)
    )
    conflicts = tuple((str(a), str(b)) for a, b in row["conflicts"])
    must_keep = tuple(dict.fromkeys(map(str, row.get("must_keep") or ())))
    unknown = {*must_keep, *(i for pair in conflicts for i in pair)} - {i.chunk.id for i in items}
    if unknown:
        raise ValueError(f"no turn has the id {sorted(unknown)[0]!r}")
    return LabelledSet(
        candidates=CandidateSet(
            query=_text(row["question"] or " ", "question").strip(),
            options=tuple(row.get("options") or ()),
            items=items,
        ),
        conflicts=conflicts,
        must_keep=must_keep,
    )


def pair_as_set(pair: LabelledPair) -> CandidateSet:
    """Returns a pair as a candidate set; the newer text is a day younger."""
    texts = (pair.older, pair.newer)
    return CandidateSet(
        query=pair.question,
        items=tuple(
            Candidate(
                chunk=Chunk(id=str(n), text=text, at=START + timedelta(days=n), seq=n),
                relevance=1.0,
                origin="mtm",
            )
            for n, text in enumerate(texts, 1)
        ),
    )
