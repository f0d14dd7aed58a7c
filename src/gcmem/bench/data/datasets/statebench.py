"""StateBench: timelines of an agent's work, with facts written and superseded.

- Source: https://github.com/parslee-ai/statebench, `data/releases/v1.0/{train,dev,test}.jsonl`;
  also https://huggingface.co/datasets/parslee/statebench, where `events` and
  `initial_state` are JSON strings.
- Version: 1.0 (839, 209 and 209 timelines).
- Licence: MIT.
- Citation: Liotta: StateBench: A Benchmark for LLM State Correctness, version 1.0, 2024.
- Verified in the repository's schema and release notes, and on the train and dev files of 1.0:
  all fields read here. In the schema `supersedes` is a fact's id, but most rows give its key: the
  loader takes the latest earlier fact with that id or key. Ids are not unique ("W-AUTO"), and
  events are not always in order of time.

The turns are the initial facts and notes, the conversation, and the written facts that arrived
before a query. `recorded` is the order in the file; times have no timezone and are read as UTC. A
conflict pairs a superseded fact with its successor; so does each earlier remark that repeats the
superseded value word for word. The labels are the authors': in the track `brutal_realistic` each
fact supersedes the one before it, contradictory or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gcmem.bench.data.datasets.reading import (
    Source,
    first,
    in_time_order,
    list_of,
    locate_errors,
    read_rows,
    text_of,
)
from gcmem.bench.data.instances import BenchTurn, Instance, Kind
from gcmem.frozen import FrozenDict
from gcmem.times import parse_time

SOURCE = Source(
    name="StateBench",
    files=("*.jsonl", "data/releases/v1.0/*.jsonl"),
    download="https://github.com/parslee-ai/statebench (data/releases/v1.0)",
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A written fact: the names that `supersedes` may use for it, and the turn that shows it."""

    names: frozenset[str]
    value: str
    turn: BenchTurn


@dataclass(slots=True)
class Timeline:
    """The turns and conflicts of the events read so far."""

    turns: list[BenchTurn] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    remarks: list[BenchTurn] = field(default_factory=list)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)

    def add(self, text: str, *, at: datetime, role: str, speaker: str) -> BenchTurn:
        """Appends a turn in order of arrival."""
        number = len(self.turns)
        turn = BenchTurn(
            id=f"t{number}",
            text=text,
            kind="distractor",
            at=at,
            role=role,
            speaker=speaker,
            recorded=number,
        )
        self.turns.append(turn)
        return turn

    def say(self, event: Mapping[str, Any]) -> None:
        """Adds a turn of the conversation."""
        speaker = text_of(event, "speaker")
        turn = self.add(text_of(event, "text"), at=_at(event), role=speaker, speaker=speaker)
        implicit = event.get("implicit_supersession") or {}
        if implicit.get("supersedes_fact_id"):
            self.supersede(str(implicit["supersedes_fact_id"]), turn, value=turn.text)
        self.remarks.append(turn)

    def write(self, values: Mapping[str, Any], *, at: datetime) -> None:
        """Adds a written fact and its conflicts."""
        key, value = text_of(values, "key"), text_of(values, "value")
        speaker = str((values.get("source") or {}).get("type") or "system")
        text = f"{key.replace('_', ' ')}: {value}"
        turn = self.add(text, at=at, role="system", speaker=speaker)
        if values.get("supersedes"):
            self.supersede(str(values["supersedes"]), turn, value=value)
        self.facts.append(Fact(frozenset((text_of(values, "id"), key)), value, turn))

    def supersede(self, name: str, turn: BenchTurn, *, value: str) -> None:
        """Records that a turn supersedes the latest fact of a name, and remarks repeating it."""
        fact = next((fact for fact in reversed(self.facts) if name in fact.names), None)
        if fact is None:
            self.unresolved.append(name)
            return
        self.conflicts.append((fact.turn.id, turn.id))
        self.conflicts.extend(
            (remark.id, turn.id)
            for remark in self.remarks
            if remark.at is not None
            and turn.at is not None
            # Remarks made at the moment of a change mention both the old and the new value.
            and remark.at < turn.at
            and fact.value.lower() in remark.text.lower()
            and value.lower() not in remark.text.lower()
        )

    def now(self) -> tuple[BenchTurn, ...]:
        """Returns the turns so far in order of time, with their kinds."""
        gone = {older for older, _ in self.conflicts}
        held = {newer for _, newer in self.conflicts} - gone

        def kind(turn: BenchTurn) -> Kind:
            return "old" if turn.id in gone else "new" if turn.id in held else "distractor"

        return in_time_order(replace(turn, kind=kind(turn)) for turn in self.turns)


def load(path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
    """Reads every query of every timeline, with the turns that arrived before it."""
    return first(_instances(SOURCE.find(path)), limit)


def _instances(file: Path) -> Iterator[Instance]:
    for row in read_rows(file):
        with locate_errors(file, row.place):
            instances = list(_queries(row.values))
        yield from instances


def _queries(values: Mapping[str, Any]) -> Iterator[Instance]:
    timeline = _initial_timeline(_parsed(values["initial_state"]))
    turns: tuple[BenchTurn, ...] | None = None
    count = 0
    for number, event in enumerate(_parsed(values["events"]), 1):
        try:
            type_ = event["type"]
            if type_ == "query":
                # Consecutive queries share one memory.
                turns = timeline.now() if turns is None else turns
                yield _instance(values, event, timeline=timeline, turns=turns, number=count)
                count += 1
                continue
            turns = None
            if type_ == "conversation_turn":
                timeline.say(event)
            elif type_ in ("state_write", "supersession"):
                for write in list_of(event, "writes"):
                    timeline.write(write, at=_at(event))
            else:
                raise ValueError(f"unknown event type: {type_!r}")
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            reason = f"{error} is missing" if type(error) is KeyError else str(error)
            raise ValueError(f"event {number}: {reason}") from None


def _initial_timeline(state: Mapping[str, Any]) -> Timeline:
    timeline = Timeline()
    for fact in state.get("persistent_facts") or ():
        timeline.write(fact, at=_at(fact))
    for note in state.get("working_set") or ():
        timeline.add(text_of(note, "content"), at=_at(note), role="system", speaker="system")
    return timeline


def _instance(
    values: Mapping[str, Any],
    query: Mapping[str, Any],
    *,
    timeline: Timeline,
    turns: tuple[BenchTurn, ...],
    number: int,
) -> Instance:
    truth = query["ground_truth"]
    return Instance(
        id=f"{text_of(values, 'id')}-{number}",
        family=f"statebench_{text_of(values, 'track')}",
        question=text_of(query, "prompt"),
        turns=turns,
        answers=(text_of(truth, "decision"),),
        conflicts=tuple(timeline.conflicts),
        metadata=FrozenDict(
            track=values["track"],
            domain=values.get("domain"),
            difficulty=values.get("difficulty"),
            detection_mode=values.get("detection_mode"),
            asked_at=_at(query).isoformat(),
            decision_type=truth.get("decision_type"),
            must_mention=tuple(list_of(truth, "must_mention")),
            must_not_mention=tuple(list_of(truth, "must_not_mention")),
            unresolved=tuple(timeline.unresolved),
        ),
    )


def _at(values: Mapping[str, Any]) -> datetime:
    return parse_time(values["ts"], tz=UTC)


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
