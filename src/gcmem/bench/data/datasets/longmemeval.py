"""LongMemEval: questions about a user's many chats with an assistant.

- Source: https://huggingface.co/datasets/xiaowu0162/longmemeval (2024) and, since September 2025,
  https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned; code and description at
  https://github.com/xiaowu0162/LongMemEval.
- Files: `longmemeval_oracle.json`, `longmemeval_s.json`, `longmemeval_m.json`, or
  `longmemeval_s_cleaned.json`, `longmemeval_m_cleaned.json`; 500 questions each. The m files are
  loaded into memory, which takes several times their size.
- Licence: MIT.
- Citation: Wu et al.: LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory.
  ICLR 2025, arXiv:2410.10813.
- Verified in the repository's README and its retrieval code: every field read here, `has_answer`,
  the order of sessions (sorted, but not in the oracle file), `_abs` for abstention. Verified in
  other public readers only: how dates are written, "2023/05/20 (Sat) 02:21".

A session's date is the time of its first turn; each later turn adds a second. No timezone is
given, so times are UTC. Turns with evidence are `new`. In a `knowledge-update` question, evidence
of earlier answer sessions is `old` and conflicts with evidence of the latest one. An abstention
question asks about something never said: all its turns are `distractor`s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gcmem.bench.data.datasets.reading import (
    Source,
    first,
    list_of,
    locate_errors,
    read_rows,
    text_of,
    utc_time,
)
from gcmem.bench.data.instances import BenchTurn, Instance, Kind
from gcmem.frozen import FrozenDict

SOURCE = Source(
    name="LongMemEval",
    files=("longmemeval_*.json", "longmemeval_*"),
    download="https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned",
)
UPDATE = "knowledge-update"
DATE = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?: \(\w+\))? (\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class Session:
    """One chat, with its id and date."""

    id: str
    at: datetime
    turns: tuple[Mapping[str, Any], ...]

    @property
    def has_evidence(self) -> bool:
        """Whether a turn is marked as containing the answer."""
        return any(turn.get("has_answer") for turn in self.turns)


def load(path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
    """Reads every question with its haystack; sessions are in order of time."""
    return first(_instances(SOURCE.find(path)), limit)


def _instances(file: Path) -> Iterator[Instance]:
    for row in read_rows(file):
        with locate_errors(file, row.place):
            instance = _instance(row.values)
        yield instance


def _instance(values: Mapping[str, Any]) -> Instance:
    id_, type_ = text_of(values, "question_id"), text_of(values, "question_type")
    abstention = id_.endswith("_abs")
    turns = _turns(
        _sessions(values),
        answers=frozenset() if abstention else frozenset(list_of(values, "answer_session_ids")),
        update=type_ == UPDATE,
    )
    old = [turn.id for turn in turns if turn.kind == "old"]
    new = [turn.id for turn in turns if turn.kind == "new"]
    return Instance(
        id=id_,
        family=type_,
        question=text_of(values, "question"),
        turns=turns,
        answers=(text_of(values, "answer"),),
        conflicts=tuple((older, newer) for older in old for newer in new),
        metadata=FrozenDict(
            question_type=type_,
            question_date=date_of(text_of(values, "question_date")).isoformat(),
            abstention=abstention,
            answer_sessions=tuple(list_of(values, "answer_session_ids")),
        ),
    )


def date_of(text: str) -> datetime:
    """Parses a date in the dataset's format, ignoring the weekday."""
    found = DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"can't read the date {text!r}: expected '2023/05/20 (Sat) 02:21'")
    year, month, day, hour, minute = map(int, found.groups())
    return utc_time(year, month, day, hour, minute)


def _sessions(values: Mapping[str, Any]) -> list[Session]:
    names = ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    ids, dates, chats = (list_of(values, name) for name in names)
    if not len(ids) == len(dates) == len(chats):
        raise ValueError(f"{', '.join(names)} differ in length")
    sessions = [
        Session(str(id_), date_of(date), tuple(chat))
        for id_, date, chat in zip(ids, dates, chats, strict=True)
    ]
    return sorted(sessions, key=lambda session: session.at)


def _turns(
    sessions: list[Session], *, answers: frozenset[str], update: bool
) -> tuple[BenchTurn, ...]:
    shown = [n for n, each in enumerate(sessions) if each.id in answers and each.has_evidence]
    turns: list[BenchTurn] = []
    ids: set[str] = set()
    for number, session in enumerate(sessions):
        evidence: Kind = "old" if update and shown and number != shown[-1] else "new"
        for place, turn in enumerate(session.turns):
            text = str(turn["content"]).strip()
            if not text:  # nothing to store
                continue
            id_ = f"{session.id}_{place + 1}"
            id_ = f"{id_}#{number}" if id_ in ids else id_
            ids.add(id_)
            role = text_of(turn, "role")
            turns.append(
                BenchTurn(
                    id=id_,
                    text=text,
                    kind=evidence if number in shown and turn.get("has_answer") else "distractor",
                    at=session.at + timedelta(seconds=place),
                    role=role,
                    speaker=role,
                    recorded=len(turns),
                    session=session.id,
                )
            )
    return tuple(turns)
