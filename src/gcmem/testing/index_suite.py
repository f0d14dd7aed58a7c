"""What every vector index must do."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from gcmem.protocols import Store, Vectors
from gcmem.testing.store_harness import EVERYTHING, START, StoreHarness, chunk
from gcmem.types import Chunk, ChunkFilter, Scope

NEARLY_EQUAL = 1e-4


class IndexSuite(StoreHarness):
    """Requirements on an index: it agrees with the log and with cosines computed by NumPy."""

    def put_random(self, store: Store, *, count: int) -> tuple[tuple[Chunk, ...], Vectors]:
        """Appends chunks with random unit vectors; times are shuffled and some are equal."""
        rng = np.random.default_rng(7)
        vectors = rng.standard_normal((count, self.encoder.dimensions)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        days = rng.integers(0, count // 2, size=count)
        chunks = [
            chunk(f"n{n}", day=int(day), user="ana" if n % 10 == 0 else "bob")
            for n, day in enumerate(days)
        ]
        return store.append(chunks, vectors, encoder_id=self.encoder.id), vectors

    def test_index_of_an_empty_store_finds_nothing(self, store: Store) -> None:
        """A search in an empty store returns nothing and does not fail."""
        queries = self.encoder.encode(["a", "b"])
        assert store.index.search(queries, k=3, where=EVERYTHING, frontier=2) == [[], []]
        assert store.index.score(queries, ["no such id"]).tolist() == [[0.0], [0.0]]
        assert store.index.score(queries, []).shape == (2, 0)

    def test_index_ranks_by_similarity_and_cuts_at_k(self, store: Store) -> None:
        """The most similar chunks come first, with their cosine."""
        self.put(store, chunk("red apple pie"), chunk("green pear"), chunk("apple pie"))
        query = self.encoder.encode(["apple pie"])
        (hits,) = store.index.search(query, k=2, where=EVERYTHING)
        texts = [store.log.get([chunk_id])[chunk_id].text for chunk_id, _ in hits]
        assert texts == ["apple pie", "red apple pie"]
        assert hits[0][1] == pytest.approx(1.0, abs=1e-5)
        assert store.index.score(query, [hits[1][0]])[0, 0] == pytest.approx(hits[1][1], abs=1e-5)

    @pytest.mark.parametrize(
        "where",
        [
            EVERYTHING,
            ChunkFilter(scope=Scope(user_id="ana")),
            ChunkFilter(after=START + timedelta(days=50), as_of=START + timedelta(days=120)),
        ],
    )
    def test_index_finds_what_arithmetic_finds(self, store: Store, where: ChunkFilter) -> None:
        """Each query gets the k highest cosines, under any filter."""
        stored, vectors = self.put_random(store, count=600)
        queries = vectors[[3, 500]] * np.float32(-1)
        matching = [n for n, c in enumerate(stored) if where.admits(c)]
        for query, hits in zip(
            queries, store.index.search(queries, k=10, where=where), strict=True
        ):
            scores = {stored[n].id: float(vectors[n] @ query) for n in matching}
            best = sorted(scores.values(), reverse=True)[:10]
            assert [score for _, score in hits] == pytest.approx(best, abs=NEARLY_EQUAL)
            for chunk_id, score in hits:
                assert score == pytest.approx(scores[chunk_id], abs=NEARLY_EQUAL)
        some = matching[:50]
        scored = store.index.score(queries, [stored[n].id for n in some])
        assert np.allclose(scored, queries @ vectors[some].T, atol=NEARLY_EQUAL)

    def test_equal_chunks_come_newest_first(self, store: Store) -> None:
        """Among equal scores, the chunk stored last comes first."""
        stored = self.put(store, *(chunk("tea", day=n) for n in (2, 3, 1)))
        (hits,) = store.index.search(self.encoder.encode(["tea"]), k=2, where=EVERYTHING)
        assert [chunk_id for chunk_id, _ in hits] == [stored[2].id, stored[1].id]

    def test_index_finds_the_frontier_of_time_and_similarity(self, store: Store) -> None:
        """After the k most similar chunks, the frontier follows, newest first."""
        old = [chunk(f"ana eats meat {n}", day=n) for n in range(20)]
        self.put(store, *old, chunk("ana eats tofu", day=30), chunk("rain", day=31))
        query = self.encoder.encode(["ana eats meat"])
        (hits,) = store.index.search(query, k=2, where=EVERYTHING, frontier=1)
        chunks = store.log.get([chunk_id for chunk_id, _ in hits])
        texts = [chunks[chunk_id].text for chunk_id, _ in hits]
        assert "ana eats tofu" in texts[2:]
        times = [chunks[chunk_id].at for chunk_id, _ in hits[2:]]
        assert times == sorted(times, reverse=True)  # type: ignore[type-var]

    @pytest.mark.parametrize("depth", [1, 2, 3])
    def test_frontier_is_what_few_newer_chunks_match(self, store: Store, depth: int) -> None:
        """Counting newer chunks one by one over random vectors gives the same frontier."""
        stored, vectors = self.put_random(store, count=300)
        query = vectors[17] * np.float32(-1)
        scores = vectors @ query
        newest_first = sorted(
            range(len(stored)), key=lambda n: (stored[n].at, stored[n].seq), reverse=True
        )
        expected = [
            stored[n].id
            for place, n in enumerate(newest_first)
            if sum(scores[m] >= scores[n] for m in newest_first[:place]) < depth
        ]
        (hits,) = store.index.search(query[None], k=1, where=EVERYTHING, frontier=depth)
        top, *frontier = [chunk_id for chunk_id, _ in hits]
        assert top == stored[int(np.argmax(scores))].id
        assert frontier == [chunk_id for chunk_id in expected if chunk_id != top]
        (more,) = store.index.search(query[None], k=50, where=EVERYTHING, frontier=depth, beyond=1)
        assert [chunk_id for chunk_id, _ in more[50:]] == frontier

    def test_index_sees_what_was_added_and_erased_after_a_search(self, store: Store) -> None:
        """The index never lags behind the log."""
        first, second = self.put(store, chunk("tea one"), chunk("tea two"))
        assert sorted(self.found(store, "tea")) == ["tea one", "tea two"]
        self.put(store, chunk("tea three"))
        assert store.delete([first.id, "no such id"]) == 1
        assert sorted(self.found(store, "tea")) == ["tea three", "tea two"]
        assert store.log.get([first.id, second.id]).keys() == {second.id}
        erased, kept = store.index.score(self.encoder.encode(["tea"]), [first.id, second.id])[0]
        assert erased == 0
        assert kept > 0

    def test_index_sees_what_another_instance_did(self, store: Store, other: Store) -> None:
        """Writes, erasures and metadata changes by others are visible once acknowledged."""
        one, two = self.put(other, chunk("tea one"), chunk("tea two"))
        assert sorted(self.found(store, "tea")) == ["tea one", "tea two"]
        other.delete([one.id])
        other.log.set_metadata(two.id, {"tag": "x"})
        self.put(other, chunk("tea three"))
        assert sorted(self.found(store, "tea")) == ["tea three", "tea two"]
        assert self.found(store, "tea", ChunkFilter(metadata=(("tag", "x"),))) == ["tea two"]

    def test_index_rebuilds_from_the_log(self, store: Store) -> None:
        """After a rebuild, the index finds the same chunks."""
        stored = self.put(store, *(chunk(f"tea {n}", day=n) for n in range(4)))
        store.delete([stored[2].id])
        found = self.found(store, "tea")
        assert store.index.rebuild(self.encoder) == 3
        assert self.found(store, "tea") == found
        assert store.index.state() == store.log.state()

    def test_index_adds_what_only_the_log_has(self, store: Store) -> None:
        """A crash between log and index loses nothing; one in one database can't happen."""
        (first,) = self.put(store, chunk("tea one"))
        if store.index.shares_log:
            return
        store.log.append([chunk("tea two"), chunk("tea three")])
        store.log.delete([first.id])
        assert store.index.state() != store.log.state()
        assert sorted(self.found(store, "tea")) == ["tea three", "tea two"]
        assert store.index.state() == store.log.state()
        assert store.index.score(self.encoder.encode(["tea"]), [first.id]).tolist() == [[0.0]]
