"""The same stream and the same question give the same answer, whatever engine holds them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcmem import Chunk, Memory, Scope
from gcmem.protocols import Store, Vectors
from gcmem.settings import Settings
from gcmem.store.urls import open_store
from gcmem.testing import RuleOracle
from gcmem.types import ChunkFilter, SearchResult, Strategy
from tests.conftest import NOW, day, same_slot
from tests.postgres_server import PostgresServer
from tests.redis_server import RedisServer

STM_SIZE = 3
ENGINES = ("embedded", "postgres", "qdrant")
BUFFERS = ("log", "redis")


class SlotEncoder:
    """Gives every text a fixed direction of its own, near that of the slot it speaks of."""

    id = "slots@1"
    dimensions = 24

    def encode(self, texts: Sequence[str]) -> Vectors:
        vectors = np.array([_random(t.split("=")[0]) + 0.5 * _random(t) for t in texts])
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(unit, dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)


def _random(text: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(list(text.encode())).normal(size=SlotEncoder.dimensions)


ENCODER = SlotEncoder()


@dataclass(frozen=True)
class Observation:
    text: str
    day: int
    recorded_day: int
    scope: Scope
    metadata: dict[str, Any]

    def chunk(self) -> Chunk:
        return Chunk(
            id=str(uuid.uuid4()),
            text=self.text,
            at=day(self.day),
            recorded_at=day(self.recorded_day),
            scope=self.scope,
            metadata=self.metadata,
        )


@dataclass(frozen=True)
class Erasure:
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Relabelling:
    number: int
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Question:
    text: str
    scope: Scope
    k: int
    as_of: datetime | None
    known_at: datetime | None
    filters: dict[str, Any]
    strategy: Strategy


Step = tuple[Observation, ...] | Erasure | Relabelling | Question

SLOTS, VALUES = st.sampled_from("food home job".split()), st.sampled_from("abc")
TEXTS = st.builds("{}={}".format, SLOTS, VALUES)
DAYS = st.integers(0, 6)  # few, so that times are often equal, and arrivals late
SCOPES = st.builds(
    Scope,
    user_id=st.sampled_from(["ana", "bob"]),
    agent_id=st.sampled_from([None, "x"]),
    run_id=st.sampled_from([None, "1"]),
)
WIDER = SCOPES | st.builds(Scope, user_id=st.sampled_from(["ana", None]))
SCALARS = st.sampled_from([1, True, "1", None, 2.5])
METADATA = st.dictionaries(st.sampled_from(["kind", "n"]), SCALARS | st.lists(SCALARS, max_size=2))
FILTERS: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(
    st.sampled_from(["kind", "n"]), SCALARS | st.lists(SCALARS, min_size=1, max_size=2), max_size=1
)
MOMENTS = st.none() | DAYS.map(day)
OBSERVATIONS = st.builds(Observation, TEXTS, DAYS, DAYS, SCOPES, METADATA)
BATCHES = st.lists(OBSERVATIONS, min_size=1, max_size=8).map(tuple)
QUESTIONS = st.builds(
    Question,
    text=SLOTS,
    scope=WIDER,
    k=st.integers(1, 4),
    as_of=MOMENTS,
    known_at=MOMENTS,
    filters=FILTERS,
    strategy=st.sampled_from(get_args(Strategy)),
)
CHANGES = st.builds(Erasure, st.lists(st.integers(0, 40), max_size=3).map(tuple)) | st.builds(
    Relabelling, st.integers(0, 40), METADATA
)
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    BATCHES | CHANGES | QUESTIONS, min_size=1, max_size=8
)


class Player:
    """Plays a script of steps on one store and notes what it answers."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._memories = {
            strategy: Memory(
                store=store,
                encoder=ENCODER,
                oracle=RuleOracle(same_slot),
                require_qualified=False,
                clock=lambda: NOW,
                settings=Settings(strategy=strategy, stm_size=STM_SIZE, overfetch=2),
            )
            for strategy in get_args(Strategy)
        }

    def play(self, step: Step, stream: list[Chunk]) -> object:
        memory = self._memories["dense"]
        if isinstance(step, Question):
            return answer(self._memories[step.strategy], step)
        if isinstance(step, Erasure):
            return memory.forget(ids=[stream[n].id for n in step.numbers if n < len(stream)])
        if isinstance(step, Relabelling):
            if step.number >= len(stream):
                return None
            updated = self.store.log.set_metadata(stream[step.number].id, step.metadata)
            return None if updated is None else replace(updated, seq=None)
        fresh = stream[-len(step) :]
        vectors = ENCODER.encode([chunk.text for chunk in fresh])
        self.store.buffer.push(self.store.append(fresh, vectors, encoder_id=ENCODER.id))
        return None

    def clear(self) -> None:
        self.store.delete([chunk.id for chunk in self.store.log.scan(ChunkFilter())])


def answer(memory: Memory, question: Question) -> object:
    """Everything that an answer says but its timings and its scores' last digits."""
    result: SearchResult = memory.search(
        question.text,
        user_id=question.scope.user_id,
        agent_id=question.scope.agent_id,
        run_id=question.scope.run_id,
        k=question.k,
        as_of=question.as_of,
        known_at=question.known_at,
        filters=question.filters,
    )
    return {
        "candidates": [(c.chunk.id, c.origin, round(c.relevance, 3)) for c in result.candidates],
        "kept": [c.chunk.id for c in result.kept],
        "shadows": {s.candidate.chunk.id: s.witness.chunk.id for s in result.shadows},
        "undecided": sorted(str(pair) for pair in result.undecided),
        "metadata": [c.chunk.metadata for c in result.candidates],
    }


@pytest.fixture(scope="module")
def players(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Player]]:
    """Every engine, with recent chunks from its log and from Redis, each a store of its own."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis:
        players = {}
        for engine in ENGINES:
            for buffer in BUFFERS:
                url = {
                    "embedded": ":memory:",
                    "postgres": postgres.make_schema(),
                    "qdrant": "sqlite:///:memory:?index=qdrant://:memory:",
                }[engine]
                # One server, several stores: a schema is not part of a store's location.
                stm = f"{redis.url}?namespace={engine}" if buffer == "redis" else None
                store = open_store(url, encoder=ENCODER, stm_size=STM_SIZE, stm=stm)
                players[f"{engine}, {buffer}"] = Player(store)
        yield players
        for player in players.values():
            player.store.close()


@settings(max_examples=25)
@given(history=BATCHES, steps=STEPS, question=QUESTIONS)
def test_every_store_gives_the_same_answers(
    players: dict[str, Player],
    history: tuple[Observation, ...],
    steps: list[Step],
    question: Question,
) -> None:
    for player in players.values():
        player.clear()
    stream: list[Chunk] = []
    for step in (history, *steps, question):
        if isinstance(step, tuple):
            stream += [observation.chunk() for observation in step]
        answers = {name: player.play(step, stream) for name, player in players.items()}
        expected = answers["embedded, log"]
        for name, given_answer in answers.items():
            assert given_answer == expected, name


def test_the_questions_are_hard_enough_to_tell_stores_apart(players: dict[str, Player]) -> None:
    """A stream on which the strategies differ, chunks are shadowed and equals are cut."""
    for player in players.values():
        player.clear()
    rng = np.random.default_rng(7)
    stream = [
        Observation(
            text=f"{rng.choice(['food', 'home'])}={rng.integers(20)}",
            day=int(rng.integers(40)),
            recorded_day=50,
            scope=Scope(user_id="ana"),
            metadata={},
        )
        for _ in range(120)
    ]
    chunks = [observation.chunk() for observation in stream]
    found: dict[Strategy, list[Any]] = {strategy: [] for strategy in get_args(Strategy)}
    for player in players.values():
        player.play(tuple(stream), chunks)
    for strategy in get_args(Strategy):
        question = Question("food", Scope(user_id="ana"), 4, None, None, {}, strategy)
        found[strategy] = [player.play(question, chunks) for player in players.values()]
        assert all(other == found[strategy][0] for other in found[strategy])
        assert found[strategy][0]["shadows"]
    assert len({str(answers[0]["candidates"]) for answers in found.values()}) == len(found)
