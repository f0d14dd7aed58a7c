"""Qdrant as an index beside SQLite and PostgreSQL logs."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcmem.protocols import Encoder, Store
from gcmem.store.qdrant.engine import QdrantEngine, open_engine
from gcmem.store.urls import open_store
from gcmem.testing import HashEncoder
from gcmem.testing.store_suite import EVERYTHING, IndexSuite, StoreSuite, WordsSuite, chunk
from tests.postgres_server import PostgresServer
from tests.qdrant_http import StandIn

SERVER_URL = os.environ.get("GCMEM_TEST_QDRANT_URL")
"""A server that may be written to, for example qdrant://:key@host:6333."""


class TestQdrantInMemory(StoreSuite):
    durable = False
    shared = False

    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        url = f"sqlite:///{tmp_path}/log.db?index=qdrant://:memory:"
        return open_store(url, encoder=encoder, stm_size=5)


def test_a_folder_that_was_closed_opens_as_it_was(tmp_path: Path) -> None:
    """One test, not the suite: the client's local mode writes a few hundred points a second."""
    encoder, url = HashEncoder(), f"sqlite:///{tmp_path}/log.db?index=qdrant://{tmp_path}/index"
    chunks = [chunk(f"tea {n}", metadata={"n": n}) for n in range(5)]
    vectors = encoder.encode([c.text for c in chunks])
    first = open_store(url, encoder=encoder, stm_size=5)
    stored = first.append(chunks, vectors, encoder_id=encoder.id)
    first.close()
    again = open_store(url, encoder=encoder, stm_size=5)
    assert list(again.log.scan(EVERYTHING)) == list(stored)
    assert again.index.encoder_id == encoder.id
    assert again.index.state() == again.log.state()
    (late,) = again.append([chunk("tea 5")], vectors[:1], encoder_id=encoder.id)
    assert late.seq == (stored[-1].seq or 0) + 1
    assert len(again.index.search(encoder.encode(["tea"]), k=9, where=EVERYTHING)[0]) == 6
    again.close()


class OverHttp:
    """Gives every test a stand-in for the server."""

    address = ""

    @pytest.fixture(autouse=True)
    def _stand_in(self) -> Iterator[None]:
        stand_in = StandIn()
        with stand_in.listening() as address:
            self.address = address
            yield
        stand_in.data.close()


class TestQdrantOverHttp(OverHttp, StoreSuite):
    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        index = f"qdrant://{self.address}/memory?shard_number=2"
        return open_store(f"sqlite:///{tmp_path}/log.db?index={index}", encoder=encoder, stm_size=5)


class TestQdrantBesidePostgres(OverHttp, IndexSuite, WordsSuite):
    @pytest.fixture(autouse=True)
    def _database(self, postgres: PostgresServer) -> None:
        self.database = postgres.make_schema()

    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        index = f"qdrant://{self.address}/memory"
        return open_store(f"{self.database}&index={index}", encoder=encoder, stm_size=5)


if SERVER_URL:

    class TestQdrantServer(StoreSuite):
        """The same on a real server; every test has a collection of its own, and drops it."""

        @pytest.fixture(autouse=True)
        def _collection(self) -> Iterator[None]:
            self.index = f"{SERVER_URL}/test-{uuid.uuid4().hex}"
            yield
            engine = open_engine(self.index)
            assert isinstance(engine, QdrantEngine)
            engine.drop()
            engine.close()

        def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
            url = f"sqlite:///{tmp_path}/log.db?index={self.index}"
            return open_store(url, encoder=encoder, stm_size=5)
