"""Conversations with questions whose evidence is known, for measuring retrieval.

Each dataset is measured as follows. Questions without evidence are left out.

- LoCoMo: one memory per conversation. The evidence is turns. Adversarial questions, which have no
  answer, are left out.
- LongMemEval: one memory per question, with its own sessions and ten sessions drawn from other
  questions. The evidence is the turns that contain the answer, also outdated ones. Abstention
  questions are left out.
- Memora: one memory per persona and period. The evidence is the sessions to recall; a session is
  found if one of its turns is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from gcmem.bench.data.datasets import locomo, longmemeval, memora
from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.errors import InvalidInputError

EXTRA_SESSIONS = 10
"""Sessions of other questions that are mixed into each memory of LongMemEval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and its evidence: the ids of turns or, in Memora, of sessions."""

    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The turns of one memory in order, and the questions about it."""

    id: str
    turns: tuple[BenchTurn, ...]
    questions: tuple[Question, ...]
    by_session: bool = False
    """Whether the evidence is sessions instead of turns."""

    def sessions(self) -> list[tuple[BenchTurn, ...]]:
        """Returns the turns by session."""
        return [tuple(group) for _, group in groupby(self.turns, key=lambda turn: turn.session)]

    def units(self, turn_ids: Iterable[str]) -> list[str]:
        """Returns what evidence is compared with: the turns' ids, or those of their sessions."""
        if not self.by_session:
            return list(turn_ids)
        sessions = {turn.id: turn.session or "" for turn in self.turns}
        return [sessions[turn_id] for turn_id in turn_ids]


def _locomo(path: Path, seed: int) -> list[Conversation]:
    conversations = []
    loaded = locomo.load(path)
    for sample, group in groupby(loaded, key=lambda instance: instance.id.rpartition("-")[0]):
        instances = list(group)
        questions = [_of_turns(i, i.of_kind("new")) for i in instances]
        conversations.append(_conversation(sample, instances[0].turns, questions))
    return conversations


def _longmemeval(path: Path, seed: int) -> list[Conversation]:
    instances = longmemeval.load(path)
    pool: dict[str, tuple[BenchTurn, ...]] = {}
    for instance in instances:
        for session, said in _by_session(instance.turns).items():
            pool.setdefault(session, said)
    conversations = []
    for instance in instances:
        own = _by_session(instance.turns)
        others = sorted(pool.keys() - own.keys())
        # By question, so that a smaller sample of questions has the same memories.
        draw = random.Random(f"{seed} {instance.id}")
        extra = draw.sample(others, min(EXTRA_SESSIONS, len(others)))
        sessions = sorted([*own.values(), *(pool[session] for session in extra)], key=_start)
        question = _of_turns(instance, instance.of_kind("new", "old"))
        turns = [turn for session in sessions for turn in session]
        conversations.append(_conversation(instance.id, turns, [question]))
    return conversations


def _memora(path: Path, seed: int) -> list[Conversation]:
    conversations = []
    for key, group in groupby(
        memora.load(path), key=lambda i: (i.metadata["persona"], i.metadata["period"])
    ):
        instances = list(group)
        known = {turn.session for turn in instances[0].turns}
        questions = [
            Question(
                text=instance.question,
                category=_category(instance),
                evidence=frozenset(instance.metadata["sessions_to_recall"]) & known,
            )
            for instance in instances
        ]
        made = _conversation(" ".join(key), instances[0].turns, questions)
        conversations.append(replace(made, by_session=True))
    return conversations


SETS: Mapping[str, Callable[[Path, int], list[Conversation]]] = MappingProxyType(
    {"locomo": _locomo, "longmemeval": _longmemeval, "memora": _memora}
)
"""The datasets by name; each function takes the path and the seed."""


def load_conversations(
    name: str, path: Path, *, questions: int | None = None, seed: int = 0
) -> tuple[Conversation, ...]:
    """Reads a dataset, or a random sample of its questions; the seed also draws extra sessions."""
    if name not in SETS:
        raise InvalidInputError(f"no dataset {name!r}: pass one of {', '.join(SETS)}")
    asked = [c for c in SETS[name](path, seed) if c.questions]
    if not asked:
        raise InvalidInputError(f"{path} has no question with evidence")
    return sample(asked, questions, seed=seed)


def sample(
    conversations: Sequence[Conversation], questions: int | None, *, seed: int
) -> tuple[Conversation, ...]:
    """Returns the conversations with at most this many of their questions, drawn at random."""
    places = [(c, q) for c, each in enumerate(conversations) for q in range(len(each.questions))]
    if questions is None or questions >= len(places):
        return tuple(conversations)
    drawn = sorted(random.Random(seed).sample(places, questions))
    return tuple(
        replace(
            conversations[number],
            questions=tuple(conversations[number].questions[place] for _, place in group),
        )
        for number, group in groupby(drawn, key=lambda place: place[0])
    )


def _conversation(
    id_: str, turns: Iterable[BenchTurn], questions: Iterable[Question]
) -> Conversation:
    return Conversation(
        id=id_, turns=tuple(turns), questions=tuple(q for q in questions if q.evidence)
    )


def _of_turns(instance: Instance, evidence: Iterable[BenchTurn]) -> Question:
    return Question(
        text=instance.question,
        category=_category(instance),
        evidence=frozenset(turn.id for turn in evidence),
    )


def _category(instance: Instance) -> str:
    return instance.family.removeprefix("locomo_").removeprefix("memora_").replace("_", "-")


def _by_session(turns: Iterable[BenchTurn]) -> dict[str, tuple[BenchTurn, ...]]:
    sessions: dict[str, list[BenchTurn]] = {}
    for turn in turns:
        sessions.setdefault(turn.session or "", []).append(turn)
    return {session: tuple(said) for session, said in sessions.items()}


def _start(session: Sequence[BenchTurn]) -> tuple[str, str]:
    at = session[0].at
    return ("" if at is None else at.isoformat(), session[0].id)
