from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gcmem.protocols import Encoder, Store
from gcmem.store.qdrant import QdrantLog, open_qdrant
from gcmem.testing import HashEncoder
from gcmem.testing.store_suite import EVERYTHING, StoreSuite, chunk
from gcmem.types import ChunkFilter, Scalar
from tests.qdrant_http import StandIn

SERVER_URL = os.environ.get("GCMEM_TEST_QDRANT_URL")
"""A server that may be written to, for example qdrant://:key@host:6333."""


class QdrantSuite(StoreSuite):
    in_order = False  # a batch is whole when it is seen, but may be seen after a later one

    def url(self, tmp_path: Path) -> str:
        raise NotImplementedError

    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        return open_qdrant(self.url(tmp_path), encoder=encoder, stm_size=5)

    def test_metadata_is_replaced_and_found_by_its_new_values(self, store: Store) -> None:
        before, other = self.put(
            store, chunk("tea", metadata={"kind": "x", "n": 1}), chunk("tea", metadata={"n": 1})
        )
        assert isinstance(store.log, QdrantLog)
        after = store.log.set_metadata(before.id, {"kind": "y", "deep": [{"a": None}]})
        assert after == replace(before, metadata={"kind": "y", "deep": [{"a": None}]})
        assert store.log.get([before.id]) == {before.id: after}
        assert store.log.count(ChunkFilter(metadata=(("kind", "x"),))) == 0
        assert [c.id for c in store.log.scan(ChunkFilter(metadata=(("n", 1),)))] == [other.id]
        found = store.index.search(
            self.encoder.encode(["tea"]), k=5, where=ChunkFilter(metadata=(("kind", "y"),))
        )
        assert [chunk_id for chunk_id, _ in found[0]] == [before.id]
        assert store.log.set_metadata("no such id", {}) is None
        assert store.log.count(EVERYTHING) == 2

    def test_metadata_filters_know_types_lists_and_odd_keys(self, store: Store) -> None:
        self.put(
            store,
            chunk("a", metadata={"n": [1, 2], "a.b": "x", "big": 2**62 + 1}),
            chunk("b", metadata={"n": 1.0, "a": {"b": "x"}, "none": None}),
        )
        cases: list[tuple[str, Scalar, list[str]]] = [
            ("n", 1, ["b"]),
            ("a.b", "x", ["a"]),
            ("big", 2**62 + 1, ["a"]),
            ("big", 2**62, []),
            ("none", None, ["b"]),
        ]
        for key, value, expected in cases:
            where = ChunkFilter(metadata=((key, value),))
            assert [c.text for c in store.log.scan(where)] == expected

    def test_verdicts_go_with_their_chunks(self, store: Store) -> None:
        a, b = self.put(store, chunk("a"), chunk("b"))
        assert store.verdicts is not None
        store.verdicts.put("oracle@1", "q", {(a.id, b.id): 0.5, (b.id, a.id): float("nan")})
        assert store.verdicts.get("oracle@1", "q", [(a.id, b.id), (b.id, a.id)]) == {
            (a.id, b.id): 0.5
        }
        store.log.delete([b.id])
        assert store.verdicts.get("oracle@1", "q", [(a.id, b.id)]) == {}

    def test_vectors_stay_in_service_until_the_new_ones_are_there(self, store: Store) -> None:
        self.put(store, *(chunk(f"tea {n}", day=n) for n in range(300)))
        other = HashEncoder(dimensions=16)
        counts = []
        store.log.reindex(other, progress=lambda *_: counts.append(len(self.found(store, "tea 5"))))
        assert counts == [100, 100]
        assert [c.text for c in store.log.scan(EVERYTHING)] == [f"tea {n}" for n in range(300)]


class TestQdrantInMemory(QdrantSuite):
    durable = False
    shared = False

    def url(self, tmp_path: Path) -> str:
        return "qdrant://:memory:"


def test_a_folder_that_was_closed_opens_as_it_was(tmp_path: Path) -> None:
    """One test, not the suite: the client's local mode writes a few hundred points a second."""
    encoder, url = HashEncoder(), f"qdrant://{tmp_path}/store"
    chunks = [chunk(f"tea {n}", metadata={"n": n}) for n in range(5)]
    vectors = encoder.encode([c.text for c in chunks])
    first = open_qdrant(url, encoder=encoder, stm_size=5)
    stored = first.log.append(chunks, vectors, encoder_id=encoder.id)
    first.close()
    again = open_qdrant(url, encoder=encoder, stm_size=5)
    assert list(again.log.scan(EVERYTHING)) == list(stored)
    assert again.log.encoder_id == encoder.id
    (late,) = again.log.append([chunk("tea 5")], vectors[:1], encoder_id=encoder.id)
    assert late.seq == (stored[-1].seq or 0) + 1
    assert len(again.index.search(encoder.encode(["tea"]), k=9, where=EVERYTHING)[0]) == 6
    again.close()


class TestQdrantOverHttp(QdrantSuite):
    """The same over HTTP, to a stand-in for the server."""

    address = ""

    @pytest.fixture(autouse=True)
    def _stand_in(self) -> Iterator[None]:
        stand_in = StandIn()
        with stand_in.listening() as address:
            self.address = address
            yield
        stand_in.data.close()

    def url(self, tmp_path: Path) -> str:
        return f"qdrant://{self.address}/memory?shard_number=2"


if SERVER_URL:

    class TestQdrantServer(QdrantSuite):
        """The same on a real server; every test has a store of its own, and drops it."""

        def url(self, tmp_path: Path) -> str:
            return f"{SERVER_URL}/test-{uuid.uuid4().hex}"

        @pytest.fixture
        def store(self, tmp_path: Path) -> Iterator[Store]:
            store = self.make_store(tmp_path, self.encoder)
            yield store
            assert isinstance(store.log, QdrantLog)
            store.log.drop()
            store.close()
