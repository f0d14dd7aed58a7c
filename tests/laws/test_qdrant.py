"""Qdrant's index answers as the embedded one does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcmem.protocols import Vectors
from gcmem.store import open_embedded
from gcmem.store.qdrant import open_qdrant
from gcmem.testing.store_suite import START, chunk
from gcmem.types import ChunkFilter, Scope

WORDS = st.sampled_from("ana bob eats meat tofu tea likes rain in paris never".split())
TEXTS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
USERS = st.sampled_from(["ana", "bob", None])
DAYS = st.integers(0, 5)
METADATA = st.dictionaries(st.sampled_from(["kind", "n"]), st.sampled_from([1, True, "1", None, 2]))
STREAM = st.lists(st.tuples(TEXTS, DAYS, DAYS, USERS, METADATA), min_size=1, max_size=30)


class RandomEncoder:
    """Gives every text a direction of its own: only equal texts are equally similar."""

    id = "random@1"
    dimensions = 24

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = [np.random.default_rng(list(text.encode())).normal(size=24) for text in texts]
        vectors = np.array(rows, dtype=np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


MOMENTS = st.none() | DAYS.map(lambda days: START + timedelta(days=days))
FILTERS = st.builds(
    ChunkFilter,
    scope=st.builds(Scope, user_id=USERS),
    after=MOMENTS,
    as_of=MOMENTS,
    known_at=MOMENTS,
    metadata=st.just(()) | METADATA.map(lambda metadata: tuple(metadata.items())),
)


@settings(max_examples=40)
@given(
    stream=STREAM,
    questions=st.lists(TEXTS, min_size=1, max_size=3),
    where=FILTERS,
    k=st.integers(1, 12),
    frontier=st.integers(0, 3),
    erased=st.sets(st.integers(0, 29), max_size=3),
)
def test_qdrant_finds_what_the_embedded_index_finds(
    stream: list[tuple[str, int, int, str | None, dict[str, object]]],
    questions: list[str],
    where: ChunkFilter,
    k: int,
    frontier: int,
    erased: set[int],
) -> None:
    encoder = RandomEncoder()
    chunks = [
        chunk(text, day=day, recorded_day=recorded, user=user, metadata=metadata)
        for text, day, recorded, user, metadata in stream
    ]
    vectors = encoder.encode([c.text for c in chunks])
    queries = encoder.encode(questions)
    in_scope = [c.id for c in chunks if where.scope.covers(c.scope)]
    stores = [
        open_embedded(":memory:", encoder=encoder, stm_size=5),
        open_qdrant("qdrant://:memory:", encoder=encoder, stm_size=5),
    ]
    found = []
    for store in stores:
        store.log.append(chunks, vectors, encoder_id=encoder.id)
        store.log.delete([chunks[n].id for n in erased if n < len(chunks)])
        hits = store.index.search(queries, k=k, where=where, frontier=frontier)
        scan = [c.id for c in store.log.scan(where, by_time=True, newest_first=True)]
        count = store.log.count(where)
        scores = store.index.score(queries, in_scope)
        found.append((hits, scan, count, scores, [c.id for c in store.buffer.recent(where)]))
        store.close()
    embedded, qdrant = found
    for ours, theirs in zip(qdrant[0], embedded[0], strict=True):
        assert [i for i, _ in ours] == [i for i, _ in theirs]
        assert [s for _, s in ours] == pytest.approx([s for _, s in theirs], abs=1e-5)
    assert qdrant[1:3] == embedded[1:3]
    assert np.allclose(qdrant[3], embedded[3], atol=1e-5)
    assert qdrant[4] == embedded[4]


@pytest.mark.parametrize("frontier", [1, 2, 5])
def test_many_equal_texts_and_times_are_told_apart_as_the_embedded_index_does(
    frontier: int,
) -> None:
    encoder = RandomEncoder()
    random = np.random.default_rng(frontier)
    chunks = [
        chunk(f"text {random.integers(30)}", day=int(random.integers(60))) for _ in range(900)
    ]
    vectors = encoder.encode([c.text for c in chunks])
    queries = encoder.encode(["text 3", "something else"])
    results = []
    for store in (
        open_embedded(":memory:", encoder=encoder, stm_size=5),
        open_qdrant("qdrant://:memory:", encoder=encoder, stm_size=5),
    ):
        store.log.append(chunks, vectors, encoder_id=encoder.id)
        hits = store.index.search(queries, k=5, where=ChunkFilter(), frontier=frontier)
        results.append([[chunk_id for chunk_id, _ in found] for found in hits])
        store.close()
    assert results[0] == results[1]
    assert all(len(found) > 5 for found in results[0])
