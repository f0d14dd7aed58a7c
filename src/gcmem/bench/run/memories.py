"""Loads an instance into a store and makes its candidate sets."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.bench.data.streams import Texts
from gcmem.judge import GoldOracle
from gcmem.memory import Memory
from gcmem.protocols import Store
from gcmem.settings import Settings
from gcmem.store import open_embedded
from gcmem.types import Candidate, CandidateSet, Chunk, ChunkFilter, Scope

RECORDED = datetime(2026, 1, 1, tzinfo=UTC)
REPLAYS = 6
"""How many times the question is replayed at earlier times, to count usage."""


@dataclass(slots=True)
class BenchMemory:
    """One instance in its own embedded store."""

    instance: Instance
    texts: Texts
    store: Store
    chunks: tuple[Chunk, ...]
    states: dict[str, str | None]
    _sets: dict[tuple[str, str, int], CandidateSet] = field(default_factory=dict)

    @classmethod
    def of(cls, instance: Instance, texts: Texts) -> BenchMemory:
        """Stores the turns in order of arrival."""
        store = open_embedded(":memory:", encoder=texts.encoder, stm_size=Settings().stm_size)
        turns = sorted(instance.turns, key=lambda turn: turn.recorded)
        chunks = tuple(_chunk(instance, turn, n) for n, turn in enumerate(turns, 1))
        dated = [chunk for chunk in chunks if chunk.at is not None]
        if len(dated) == len(chunks):
            vectors = texts.vectors([chunk.text for chunk in chunks])
            chunks = store.append(chunks, vectors, encoder_id=texts.encoder.id)
        states = {turn.id: turn.state for turn in instance.turns}
        return cls(instance, texts, store, chunks, states)

    def candidates(self, setting: str, retrieval: str, k: int) -> CandidateSet:
        """Returns the frozen candidate set of a condition, the same object on every call."""
        key = (setting, retrieval, k)
        if key not in self._sets:
            bag = setting == "bag" or any(chunk.at is None for chunk in self.chunks)
            self._sets[key] = self._bag() if bag else self._retrieved(retrieval, k)
        return self._sets[key]

    def _bag(self) -> CandidateSet:
        query = self.texts.vectors([self.instance.question])[0]
        vectors = self.texts.vectors([chunk.text for chunk in self.chunks])
        items = [
            Candidate(chunk=chunk, relevance=float(vector @ query), origin="mtm")
            for chunk, vector in zip(self.chunks, vectors, strict=True)
        ]
        items.sort(key=lambda item: (-item.relevance, -(item.chunk.seq or 0)))
        return CandidateSet(
            query=self.instance.question, options=self.instance.options, items=tuple(items)
        )

    def _retrieved(self, retrieval: str, k: int) -> CandidateSet:
        settings = Settings(strategy=retrieval)  # type: ignore[arg-type]
        # An oracle without verdicts: every path gets the candidates of a first-time question.
        memory = Memory(
            store=self.store,
            encoder=self.texts.encoder,
            oracle=GoldOracle(()),
            settings=settings,
            require_qualified=False,
        )
        return memory.candidates(self.instance.question, k=k, options=self.instance.options)

    def usage(self, k: int) -> Counter[str]:
        """Counts how often each chunk is retrieved in replays at earlier times."""
        times = sorted(chunk.at for chunk in self.chunks if chunk.at is not None)
        query = self.texts.vectors([self.instance.question])
        counts: Counter[str] = Counter()
        for n in range(1, REPLAYS + 1):
            as_of = times[len(times) * n // (REPLAYS + 1)]
            hits = self.store.index.search(query, k=k, where=ChunkFilter(as_of=as_of))[0]
            counts.update(chunk_id for chunk_id, _ in hits)
        return counts


def _chunk(instance: Instance, turn: BenchTurn, place: int) -> Chunk:
    return Chunk(
        id=turn.id,
        text=turn.text,
        at=turn.at,
        recorded_at=RECORDED + timedelta(seconds=place),
        scope=Scope(user_id=instance.id[:200]),
        speaker=turn.speaker,
    )


def set_hash(candidates: CandidateSet) -> str:
    """Returns a short hash of the question and the ordered chunk ids."""
    said = "\n".join((candidates.query, *(item.chunk.id for item in candidates)))
    return hashlib.sha256(said.encode()).hexdigest()[:16]
