"""A benchmark instance: a memory, a question, the answer, and the kind of each turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args

from gcmem.errors import InvalidInputError
from gcmem.frozen import FrozenDict
from gcmem.times import parse_time

Kind = Literal["old", "new", "distractor", "invariant", "other"]
Subset = Literal["single", "chained", "returning", "concurrent", "late"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchTurn:
    """One turn. `old` shows a superseded state, `new` the current one, `other` another person's.

    `at` is the event time, or None if the dataset has no order. `recorded` is the position in
    order of arrival; it differs from the order in time only for late turns.
    """

    id: str
    text: str
    kind: Kind
    at: datetime | None
    role: str = "user"
    speaker: str = "user"
    state: str | None = None
    recorded: int = 0
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A memory and a question whose answer has changed.

    `answers` are the accepted texts if there are no `options`; without both, only the kept chunks
    are scored. `conflicts` are the gold pairs, older first. If `ordered` is False, the order is
    unknown and neither chunk of a pair may be removed.
    """

    id: str
    family: str
    question: str
    turns: tuple[BenchTurn, ...]
    options: tuple[str, ...] = ()
    answer: str | None = None
    answers: tuple[str, ...] = ()
    entity: str = "the user"
    severity: int = 0
    subset: Subset = "single"
    conflicts: tuple[tuple[str, str], ...] = ()
    ordered: bool = True
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False)

    def of_kind(self, *kinds: Kind) -> tuple[BenchTurn, ...]:
        """Returns the turns of the given kinds."""
        return tuple(turn for turn in self.turns if turn.kind in kinds)

    @property
    def must_keep(self) -> tuple[str, ...]:
        """Ids of the turns that are still true: all except the older turns of conflicts."""
        gone = {older for older, _ in self.conflicts} if self.ordered else set()
        return tuple(turn.id for turn in self.turns if turn.id not in gone)


def state_conflicts(turns: Sequence[BenchTurn]) -> tuple[tuple[str, str], ...]:
    """Returns the gold pairs of one entity's turns: different states, older turn first."""
    shown = [t for t in turns if t.kind in ("old", "new") and t.at is not None]
    shown.sort(key=lambda turn: turn.at)  # type: ignore[arg-type,return-value]
    return tuple(
        (a.id, b.id) for a, b in combinations(shown, 2) if a.state != b.state and a.at != b.at
    )


def dump(instances: Iterable[Instance]) -> str:
    """Returns the instances as JSONL."""
    return "".join(json.dumps(_row(i), ensure_ascii=False) + "\n" for i in instances)


def load(path: Path) -> tuple[Instance, ...]:
    """Reads JSONL written by `dump`; raises InvalidInputError with the line number."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"can't read {path}: {error}") from None
    return tuple(read(text, where=str(path)))


def read(text: str, *, where: str) -> Iterator[Instance]:
    """Yields the instances of a JSONL text."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield _instance(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{error} is missing" if type(error) is KeyError else str(error)
            raise InvalidInputError(f"{where}, line {number}: {reason}") from None


def _instance(row: Mapping[str, Any]) -> Instance:
    turns = tuple(_turn(turn) for turn in row["turns"])
    ids = {turn.id for turn in turns}
    conflicts = tuple((str(a), str(b)) for a, b in row["conflicts"])
    if len(ids) < len(turns) or not {i for pair in conflicts for i in pair} <= ids:
        raise ValueError("turn ids must be unique, and conflicts must name them")
    return Instance(
        id=str(row["id"]),
        family=str(row["family"]),
        question=str(row["question"]),
        turns=turns,
        options=tuple(row["options"]),
        answer=row["answer"],
        answers=tuple(row.get("answers", ())),
        entity=str(row["entity"]),
        severity=int(row["severity"]),
        subset=_one_of(row["subset"], get_args(Subset)),
        conflicts=conflicts,
        ordered=bool(row.get("ordered", True)),
        metadata=FrozenDict(row.get("metadata", {})),
    )


def _turn(row: Mapping[str, Any]) -> BenchTurn:
    return BenchTurn(
        id=str(row["id"]),
        text=str(row["text"]),
        kind=_one_of(row["kind"], get_args(Kind)),
        at=None if row["at"] is None else parse_time(row["at"]),
        role=str(row["role"]),
        speaker=str(row["speaker"]),
        state=row["state"],
        recorded=int(row["recorded"]),
        session=row.get("session"),
    )


def _one_of(value: Any, allowed: Sequence[Any]) -> Any:
    if value not in allowed:
        raise ValueError(f"{value!r} is not one of {', '.join(allowed)}")
    return value


def _row(instance: Instance) -> dict[str, Any]:
    row = asdict(instance)
    row["metadata"] = dict(instance.metadata)
    for turn in row["turns"]:
        turn["at"] = None if turn["at"] is None else turn["at"].isoformat()
        if turn["session"] is None:  # the shipped datasets have no sessions, nor this field
            del turn["session"]
    return row
