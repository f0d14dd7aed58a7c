"""Memora: questions about a user's chats with an assistant over a week or a month.

- Source: https://github.com/geniesinc/Memora, folder `data`. The release has one file per session;
  this loader reads the sessions joined into one file, and the questions into another, one JSON
  object per line (.jsonl, .jsonl.xz) or as a JSON list.
- Path: a folder with both files (`*sessions.json*`, `*questions.json*`), or `SESSIONS,QUESTIONS`.
- Licence: Apache-2.0.
- Citation: Uddin et al.: From Recall to Forgetting: Benchmarking Long-Term Memory for Personalized
  Agents. 2026, arXiv:2604.20006.
- Verified on joined files of five personas, weekly and monthly: every field read here. Not
  verified: the quarterly part.

Each persona and period is a memory of its own. A day's first turn is at midnight, each later turn
of that day adds a second; times are UTC. The evidence of a question is a set of sessions: in
the metadata, `sessions_to_recall` and `sessions_to_forget`. In a session to recall, the turns that
share a memory are `new`. No turn is annotated as superseded by another, so there are no conflicts,
and there are no answers to compare with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from gcmem.bench.data.datasets.reading import (
    Source,
    first,
    list_of,
    locate_errors,
    read_rows,
    text_of,
)
from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.frozen import FrozenDict

DOWNLOAD = "https://github.com/geniesinc/Memora (data, joined into two files)"
SESSIONS = Source(name="Memora", files=("*sessions.json*",), download=DOWNLOAD)
QUESTIONS = Source(name="Memora", files=("*questions.json*",), download=DOWNLOAD)
SPEAKERS = {"user_agent": "user", "ai_agent": "assistant"}

Key = tuple[str, str]
"""Persona and period: the questions of one are about its sessions only."""
Shared = dict[str, list[str]]
"""The turns that share a memory, by session."""


def load(path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
    """Reads every question with the sessions of its persona and period."""
    return first(_instances(*_files(path)), limit)


def _files(path: Path) -> tuple[Path, Path]:
    both = [Path(part.strip()) for part in str(path).split(",")]
    if len(both) == 2 and not path.exists():
        return SESSIONS.find(both[0]), QUESTIONS.find(both[1])
    if path.is_file():
        raise SESSIONS.missing(path)  # one file alone can't be both
    return SESSIONS.find(path), QUESTIONS.find(path)


def _instances(sessions: Path, questions: Path) -> Iterator[Instance]:
    memories = _memories(sessions)
    for row in read_rows(questions):
        with locate_errors(questions, row.place):
            key = text_of(row.values, "persona"), text_of(row.values, "period")
            if key not in memories:
                raise ValueError(f"{sessions} has no session of {' '.join(key)}")
            categories = row.values["questions"].items()
            asked = [(name, values) for name, listed in categories for values in listed]
        for number, (category, values) in enumerate(asked, 1):
            with locate_errors(questions, f"{row.place} ({' '.join(key)}), question {number}"):
                instance = _instance(values, key=key, category=category, memory=memories[key])
            yield instance


def _memories(file: Path) -> dict[Key, tuple[list[BenchTurn], Shared]]:
    memories: dict[Key, tuple[list[BenchTurn], Shared]] = {}
    said: Counter[tuple[Key, date]] = Counter()
    for row in read_rows(file):
        with locate_errors(file, row.place):
            key = text_of(row.values, "persona"), text_of(row.values, "period")
            turns, shared = memories.setdefault(key, ([], {}))
            session = text_of(row.values, "session_id")
            if session in shared:
                raise ValueError(f"two sessions of {' '.join(key)} have the id {session}")
            shared[session] = []
            day = date.fromisoformat(text_of(row.values, "date"))
            for place, turn in enumerate(list_of(row.values, "conversation"), 1):
                at = datetime.combine(day, time(), UTC) + timedelta(seconds=said[key, day])
                made = _turn(turn, session=session, place=place, at=at, recorded=len(turns))
                turns.append(made)
                said[key, day] += 1
                if turn.get("share_memory"):
                    shared[session].append(made.id)
    return memories


def _turn(
    values: Mapping[str, Any], *, session: str, place: int, at: datetime, recorded: int
) -> BenchTurn:
    speaker = text_of(values, "speaker")
    if speaker not in SPEAKERS:
        raise ValueError(f"speaker {speaker!r} is not one of {', '.join(SPEAKERS)}")
    return BenchTurn(
        id=f"{session}:{place}",
        text=text_of(values, "message"),
        kind="distractor",
        at=at,
        role=SPEAKERS[speaker],
        speaker=SPEAKERS[speaker],
        recorded=recorded,
        session=session,
    )


def _instance(
    values: Mapping[str, Any],
    *,
    key: Key,
    category: str,
    memory: tuple[list[BenchTurn], Shared],
) -> Instance:
    turns, shared = memory
    recall = session_ids(values["memory_evidence"])
    new = {turn_id for session in recall for turn_id in shared.get(session, ())}
    return Instance(
        id="-".join((*key, text_of(values, "question_id"))),
        family=f"memora_{category}",
        question=text_of(values, "question"),
        turns=tuple(replace(turn, kind="new") if turn.id in new else turn for turn in turns),
        metadata=FrozenDict(
            persona=key[0],
            period=key[1],
            question_date=text_of(values, "question_date"),
            sessions_to_recall=recall,
            sessions_to_forget=session_ids(values.get("forgetting_evidence")),
        ),
    )


def session_ids(evidence: Any) -> tuple[str, ...]:
    """Returns the session ids anywhere in the evidence, whose shape differs by question."""
    found: dict[str, None] = {}
    if isinstance(evidence, Mapping):
        if evidence.get("session_id") is not None:
            found[str(evidence["session_id"])] = None
        evidence = list(evidence.values())
    if isinstance(evidence, list):
        for part in evidence:
            found.update(dict.fromkeys(session_ids(part)))
    return tuple(found)
