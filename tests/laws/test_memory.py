"""The laws of a whole memory, over random streams."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcmem import Memory, Scope, SearchResult
from gcmem.errors import ChunkNotFoundError
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import ChunkFilter
from tests.conftest import NOW, day, same_slot

SLOTS = ("diet", "city", "port")
IDS = (None, "ana", "bob")


@dataclass(frozen=True)
class Event:
    text: str
    day: int
    user: str | None = "ana"
    agent: str | None = None


events = st.builds(
    Event,
    text=st.builds("{}={}".format, st.sampled_from(SLOTS), st.integers(0, 3)),
    day=st.integers(0, 9),
)
scoped_events = st.builds(
    Event,
    text=st.builds("{}={}".format, st.sampled_from(SLOTS), st.integers(0, 3)),
    day=st.integers(0, 9),
    user=st.sampled_from(IDS),
    agent=st.sampled_from(IDS),
)


def remember(stream: list[Event]) -> Memory:
    memory = Memory(
        ":memory:",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        clock=lambda: NOW,
    )
    for event in stream:
        memory.add(event.text, user_id=event.user, agent_id=event.agent, at=day(event.day))
    return memory


def texts(result: SearchResult) -> tuple[list[str], list[tuple[str, str]]]:
    return (
        sorted(item.chunk.text for item in result.kept),
        sorted((s.candidate.chunk.text, s.witness.chunk.text) for s in result.shadows),
    )


@settings(max_examples=60)
@given(st.lists(events, max_size=15), st.integers(0, 9), st.sampled_from(SLOTS))
def test_as_of_equals_the_same_memory_truncated(stream: list[Event], cut: int, query: str) -> None:
    with remember(stream) as whole, remember([e for e in stream if e.day <= cut]) as prefix:
        asked = whole.search(query, user_id="ana", k=3, as_of=day(cut))
        truncated = prefix.search(query, user_id="ana", k=3)
    assert texts(asked) == texts(truncated)


@settings(max_examples=60)
@given(st.lists(events, min_size=1, max_size=15), st.randoms(use_true_random=False))
def test_a_late_arrival_never_becomes_current(stream: list[Event], rng: object) -> None:
    # Event times made distinct: only then does the order of arrival not matter at all.
    stream = [Event(text=e.text, day=n) for n, e in enumerate(stream)]
    late = list(stream)
    rng.shuffle(late)  # type: ignore[attr-defined]
    with remember(stream) as in_order, remember(late) as out_of_order:
        first = in_order.search("diet", user_id="ana", k=50)
        second = out_of_order.search("diet", user_id="ana", k=50)
    assert texts(first) == texts(second)


@settings(max_examples=60)
@given(
    st.lists(scoped_events, max_size=15),
    st.sampled_from(IDS),
    st.sampled_from(IDS),
    st.sampled_from(SLOTS),
)
def test_no_read_crosses_a_scope(
    stream: list[Event], user: str | None, agent: str | None, query: str
) -> None:
    scope = Scope(user_id=user, agent_id=agent)
    with remember(stream) as memory:
        memory.search(query, user_id="ana")  # so that the index holds some scopes already
        memory.search(query, agent_id="bob")
        result = memory.search(query, user_id=user, agent_id=agent, k=50)
        assert len(result.candidates) == memory.store.log.count(ChunkFilter(scope=scope))
        seen = [item.chunk for item in result.candidates]
        seen += memory.get_all(user_id=user, agent_id=agent)
        seen += memory.history(user_id=user, agent_id=agent)
        assert all(scope.covers(chunk.scope) for chunk in seen)
        for chunk in memory.get_all():
            if scope.covers(chunk.scope):
                assert memory.get(chunk.id, user_id=user, agent_id=agent) == chunk
            else:
                with pytest.raises(ChunkNotFoundError):
                    memory.get(chunk.id, user_id=user, agent_id=agent)
                assert memory.forget(ids=[chunk.id], user_id=user, agent_id=agent) == 0
        assert memory.store.log.count(ChunkFilter()) == len(stream)


@settings(max_examples=30)
@given(st.lists(events, max_size=15), st.sampled_from(SLOTS))
def test_reading_changes_nothing(stream: list[Event], query: str) -> None:
    with remember(stream) as memory:
        before = memory.get_all()
        first = memory.search(query, user_id="ana", k=50)
        second = memory.search(query, user_id="ana", k=50)
        assert memory.get_all() == before
    assert texts(first) == texts(second)
    assert first.candidates == second.candidates
    assert hash(first.candidates) == hash(second.candidates)


@settings(max_examples=30)
@given(st.lists(events, min_size=1, max_size=12))
def test_modes_show_the_same_chunks_in_another_way(stream: list[Event]) -> None:
    with remember(stream) as memory:
        drop, demote, annotate = (
            memory.search("diet", user_id="ana", k=50, mode=mode)
            for mode in ("drop", "demote", "annotate")
        )
    assert [c.chunk.id for c in drop] == [c.chunk.id for c in drop.kept]
    assert list(demote)[: len(drop)] == list(drop)
    assert {c.chunk.id for c in demote} == {c.chunk.id for c in annotate}
    assert len(demote) == len(annotate) == len(demote.kept) + len(demote.shadows)
