"""Adds an instance to a memory and makes its candidate sets."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.bench.data.streams import Texts
from gcmem.judge import GoldOracle
from gcmem.memory import Memory
from gcmem.protocols import ConflictOracle, ScoreCache, Store
from gcmem.settings import Settings
from gcmem.types import Candidate, CandidateSet, Chunk, Scope, Turn

MakeOracle = Callable[[str, ScoreCache | None], ConflictOracle]

REPLAYS = 6
"""How many times the question is replayed at earlier times, to count usage."""
TURN_KEY = "turn"
"""The metadata key with a chunk's turn: a long turn has several chunks."""


@dataclass(slots=True)
class BenchMemory:
    """One instance in a memory of its own."""

    instance: Instance
    texts: Texts
    store: Store
    chunks: tuple[Chunk, ...]
    _sets: dict[tuple[str, str, int], CandidateSet] = field(default_factory=dict)

    @classmethod
    def of(cls, instance: Instance, texts: Texts) -> BenchMemory:
        """Adds the turns in order of arrival.

        If a turn has no time, none is added: a memory would date it, and the order is unknown.
        """
        turns = sorted(instance.turns, key=lambda turn: turn.recorded)
        times = [turn.at for turn in turns if turn.at is not None]
        # The memory's clock, so that no event is in the future.
        ended = max(times, default=datetime.now(UTC))
        memory = Memory(":memory:", encoder=texts, oracle=GoldOracle(()), clock=lambda: ended)
        user_id = instance.id[:200]
        try:
            if len(times) == len(turns):
                chunks = memory.add([_turn(turn) for turn in turns], user_id=user_id)
            else:
                chunks = tuple(_undated(turn, user_id) for turn in turns)
        except BaseException:
            memory.close()
            raise
        return cls(instance, texts, memory.store, chunks)

    @property
    def turn_of(self) -> dict[str, str]:
        """The turn's id by chunk id."""
        return {chunk.id: chunk.metadata[TURN_KEY] for chunk in self.chunks}

    @property
    def states(self) -> dict[str, str | None]:
        """The state that a chunk shows, by chunk id."""
        states = {turn.id: turn.state for turn in self.instance.turns}
        return {chunk_id: states[turn_id] for chunk_id, turn_id in self.turn_of.items()}

    @property
    def conflicts(self) -> list[tuple[str, str]]:
        """The gold pairs of chunks: all of the older turn with all of the newer one."""
        pieces: dict[str, list[str]] = {}
        for chunk_id, turn_id in self.turn_of.items():
            pieces.setdefault(turn_id, []).append(chunk_id)
        return [
            (a, b)
            for older, newer in self.instance.conflicts
            for a in pieces[older]
            for b in pieces[newer]
        ]

    def oracle(self, name: str, make_oracle: MakeOracle) -> ConflictOracle:
        """Returns an oracle by name; `gold` knows the instance's conflicts."""
        if name == "gold":
            return GoldOracle(self.conflicts)
        return make_oracle(name, self.store.scores)

    def candidates(self, setting: str, retrieval: str, k: int) -> CandidateSet:
        """Returns the frozen candidate set of a condition, the same object on every call."""
        key = (setting, retrieval, k)
        if key not in self._sets:
            bag = setting == "bag" or any(chunk.at is None for chunk in self.chunks)
            self._sets[key] = self._bag() if bag else self._retrieved(retrieval, k)
        return self._sets[key]

    def _bag(self) -> CandidateSet:
        query = self.texts.encode([self.instance.question])[0]
        vectors = self.texts.encode([chunk.text for chunk in self.chunks])
        items = [
            Candidate(chunk=chunk, relevance=float(vector @ query), origin="mtm")
            for chunk, vector in zip(self.chunks, vectors, strict=True)
        ]
        items.sort(key=lambda item: (-item.relevance, -(item.chunk.seq or 0)))
        return CandidateSet(
            query=self.instance.question, options=self.instance.options, items=tuple(items)
        )

    def _retrieved(self, retrieval: str, k: int) -> CandidateSet:
        memory = self._memory(retrieval)
        return memory.candidates(self.instance.question, k=k, options=self.instance.options)

    def _memory(self, strategy: str) -> Memory:
        """Returns the memory with another strategy; all other settings are the defaults."""
        return Memory(
            store=self.store,
            encoder=self.texts.encoder,  # not `texts`: a search must encode its question
            # An oracle without verdicts: every path gets the candidates of a first-time question.
            oracle=GoldOracle(()),
            settings=Settings(strategy=strategy),  # type: ignore[arg-type]
        )

    def usage(self, k: int) -> Counter[str]:
        """Counts how often each chunk is retrieved in replays at earlier times."""
        times = sorted(chunk.at for chunk in self.chunks if chunk.at is not None)
        memory = self._memory("dense")
        counts: Counter[str] = Counter()
        for n in range(1, REPLAYS + 1) if times else ():
            as_of = times[len(times) * n // (REPLAYS + 1)]
            found = memory.candidates(self.instance.question, k=k, as_of=as_of)
            counts.update(item.chunk.id for item in found)
        return counts

    def close(self) -> None:
        """Closes the store."""
        self.store.close()


def _turn(turn: BenchTurn) -> Turn:
    return Turn(
        id=turn.id,
        text=turn.text,
        at=turn.at,
        speaker=turn.speaker,
        metadata={TURN_KEY: turn.id},
    )


def _undated(turn: BenchTurn, user_id: str) -> Chunk:
    return Chunk(
        id=turn.id,
        text=turn.text,
        at=None,
        scope=Scope(user_id=user_id),
        speaker=turn.speaker,
        metadata={TURN_KEY: turn.id},
    )


def set_hash(candidates: CandidateSet) -> str:
    """Returns a short hash of the question and the ordered chunk ids."""
    said = "\n".join((candidates.query, *(item.chunk.id for item in candidates)))
    return hashlib.sha256(said.encode()).hexdigest()[:16]
