from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcmem import Chunk
from gcmem.protocols import Store
from gcmem.retrieve import retrieve
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder
from gcmem.types import ChunkFilter, Strategy

ENCODER = HashEncoder()
START = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = ChunkFilter()


def day(n: int) -> datetime:
    return START + timedelta(days=n)


def filled(texts: list[str], days: list[int] | None = None) -> Store:
    store = open_embedded(":memory:", encoder=ENCODER, stm_size=5)
    chunks = [
        Chunk(id=str(n), text=text, at=day(at), recorded_at=day(0))
        for n, (text, at) in enumerate(zip(texts, days or range(len(texts)), strict=True))
    ]
    store.append(chunks, ENCODER.encode(texts), encoder_id=ENCODER.id)
    return store


def ids(store: Store, query: str, *, strategy: Strategy, k: int = 3, pool: int = 30) -> set[str]:
    queries = ENCODER.encode([query])
    found = retrieve(
        store, query=query, queries=queries, k=k, where=EVERYTHING, strategy=strategy, pool=pool
    )
    return {item.chunk.id for item in found}


@pytest.mark.parametrize("after", [0, 1, 5, 50, 200])
def test_the_newest_state_is_found_behind_any_number_of_old_ones(after: int) -> None:
    old = [f"ana eats meat number {n}" for n in range(3000)]
    other = [f"the weather of day {n} was grey" for n in range(after)]
    store = filled([*old, "ana eats tofu", *other])
    query = "ana eats meat number"
    assert "3000" in ids(store, query, strategy="stratified")
    assert "3000" not in ids(store, query, strategy="dense")


def test_what_dense_finds_stratified_finds() -> None:
    store = filled([f"note {n} on topic {n % 7}" for n in range(300)])
    for topic in range(7):
        query = f"topic {topic}"
        plain = ids(store, query, strategy="dense", k=5, pool=5)
        assert plain <= ids(store, query, strategy="stratified", k=5, pool=15)


def test_the_pool_bounds_the_candidates() -> None:
    store = filled([f"note {n}" for n in range(2000)])
    assert len(ids(store, "note", strategy="stratified", k=10, pool=30)) == 30


def test_a_late_arrival_takes_its_place_by_event_time() -> None:
    texts = [f"ana eats meat number {n}" for n in range(500)] + ["ana eats tofu"]
    store = filled(texts, [*range(10, 510), 0])
    assert "500" not in ids(store, "ana eats meat number", strategy="stratified", k=3, pool=20)


@settings(max_examples=60, deadline=None)
@given(
    days=st.lists(st.integers(0, 30), min_size=1, max_size=60),
    depth=st.integers(1, 4),
    as_of=st.one_of(st.none(), st.integers(0, 30)),
)
def test_the_frontier_is_what_fewer_newer_chunks_match(
    days: list[int], depth: int, as_of: int | None
) -> None:
    texts = [f"note {n * 7 % 13}" for n in range(len(days))]
    store = filled(texts, days)
    where = ChunkFilter(as_of=None if as_of is None else day(as_of))
    query = ENCODER.encode(["note 3"])
    found = store.index.search(query, k=0, where=where, frontier=depth)[0]
    visible = [n for n, at in enumerate(days) if as_of is None or at <= as_of]
    newest_first = sorted(visible, key=lambda n: (days[n], n), reverse=True)
    scores = np.round(ENCODER.encode(texts) @ query[0], 4)
    expected = [
        n
        for place, n in enumerate(newest_first)
        if sum(scores[newer] >= scores[n] for newer in newest_first[:place]) < depth
    ]
    assert [int(chunk_id) for chunk_id, _ in found] == expected
