"""A store moves from engine to engine and comes back as it was."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gcmem import Chunk, Scope
from gcmem.errors import BadRowError
from gcmem.protocols import Store, Vectors
from gcmem.store.urls import open_store
from gcmem.testing import HashEncoder
from gcmem.transfer import migrate
from gcmem.types import ChunkFilter
from tests.conftest import day
from tests.unit.cli.test_commands import gcmem

ENCODER = HashEncoder()
EVERYTHING = ChunkFilter()
COUNT = 1200
"""More than one batch."""


def open_at(url: str) -> Store:
    return open_store(url, encoder=ENCODER, stm_size=5)


def contents(store: Store) -> list[Chunk]:
    return [replace(chunk, seq=None) for chunk in store.log.scan(EVERYTHING)]


def vectors(store: Store, ids: list[str]) -> Vectors:
    found = store.index.vectors(ids)
    return np.stack([found[chunk_id] for chunk_id in ids])


def test_a_store_moves_through_every_engine_with_its_vectors(
    tmp_path: Path, postgres_url: str
) -> None:
    chunks = [
        Chunk(
            id=f"chunk-{n}",
            text=f"café {n} ☕",
            at=day((n * 7) % 50),  # late arrivals and equal times
            recorded_at=day(n / 100),
            scope=Scope(user_id=f"user {n % 3}", run_id="1" if n % 2 else None),
            speaker="Ana",
            session=f"s{n % 5}",
            metadata={"n": n, "tags": ["a", None, 1.5], "deep": {"x": True}},
        )
        for n in range(COUNT)
    ]
    # Not what the encoder would give: vectors that were made anew on the way would be noticed.
    own = np.random.default_rng(1).normal(size=(COUNT, ENCODER.dimensions)).astype(np.float32)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    stores = [
        open_at(url)
        for url in (
            str(tmp_path / "first.db"),
            postgres_url,
            f"sqlite:///{tmp_path}/beside.db?index=qdrant://:memory:",
            str(tmp_path / "last.db"),
        )
    ]
    first, *_, last = stores
    first.append(chunks, own, encoder_id=ENCODER.id)
    digests = set()
    for source, target in pairwise(stores):
        moved = migrate(source, target, encoder=ENCODER)
        assert (moved.copied.added, moved.copied.embedded) == (COUNT, 0)
        assert moved.verified is not None
        assert moved.verified.in_order
        digests.add(moved.verified.digest)
    assert len(digests) == 1
    assert contents(last) == contents(first) == chunks
    ids = [chunk.id for chunk in chunks]
    assert np.allclose(vectors(last, ids), own, atol=1e-6)
    again = migrate(first, stores[1], encoder=ENCODER)
    assert (again.copied.added, again.copied.present) == (0, COUNT)
    for store in stores:
        store.close()


def test_the_command_line_moves_to_a_server_and_searches_there(
    tmp_path: Path, postgres_url: str
) -> None:
    old, back = tmp_path / "old.db", tmp_path / "back.db"
    gcmem("add", "I live in Porto.", "My cat is called Rui.", "--user", "ana", path=old)
    moved = json.loads(gcmem("migrate", str(old), postgres_url, "--json"))
    assert (moved["copied"]["added"], moved["copied"]["embedded"]) == (2, 0)
    assert moved["verified"]["rows"] == 2
    search = ("search", "Where do I live?", "--user", "ana", "--json")
    there = json.loads(gcmem(*search, "--store", postgres_url))
    here = json.loads(gcmem(*search, path=old))
    assert [hit["chunk"]["id"] for hit in there["kept"]] == [
        hit["chunk"]["id"] for hit in here["kept"]
    ]
    assert there["kept"][0]["chunk"]["text"] == "I live in Porto."
    gcmem("migrate", postgres_url, str(back))
    gcmem("judge", path=back)  # verdicts are not moved
    gcmem("judge", path=old)
    assert gcmem("history", "--json", path=back) == gcmem("history", "--json", path=old)


def spoil(path: Path, number: int) -> str:
    """Puts a NUL into the metadata of one chunk, as stores took it once; returns the chunk's id."""
    with closing(sqlite3.connect(path)) as connection, connection:
        (chunk_id,) = connection.execute(
            "UPDATE chunks SET metadata = ? WHERE seq = ? RETURNING id",
            (json.dumps({"note": "a\x00b"}), number),
        ).fetchone()
    return str(chunk_id)


def test_a_row_that_no_store_can_keep_is_named_and_what_was_moved_stays(
    tmp_path: Path, postgres_url: str
) -> None:
    count, bad = 2001, 1500
    path = tmp_path / "old.db"
    source = open_at(str(path))
    chunks = [
        Chunk(id=f"chunk-{n}", text=f"tea {n}", at=day(n / 100), recorded_at=day(n / 100))
        for n in range(count)
    ]
    source.append(chunks, ENCODER.encode([c.text for c in chunks]), encoder_id=ENCODER.id)
    chunk_id = spoil(path, bad)
    target = open_at(postgres_url)
    with pytest.raises(BadRowError, match=rf"line {bad}: chunk '{chunk_id}'.*NUL.*--skip-bad"):
        migrate(source, target, encoder=ENCODER)
    assert target.log.count(EVERYTHING) == 1000  # the batches before it
    moved = migrate(source, target, encoder=ENCODER, skip_bad=True)
    assert (moved.copied.added, moved.copied.bad) == (count - 1001, 1)
    assert [row.line for row in moved.copied.bad_rows] == [bad]
    assert moved.verified is not None
    assert moved.verified.rows == count - 1
    # Or it is mended, and the same call brings the rest.
    source.log.set_metadata(chunk_id, {"note": "ab"})
    moved = migrate(source, target, encoder=ENCODER)
    assert moved.copied.added == 1
    assert target.log.count(EVERYTHING) == count
    source.close()
    target.close()


def test_the_command_names_the_row_or_leaves_it_out(tmp_path: Path, postgres_url: str) -> None:
    path = tmp_path / "old.db"
    gcmem("add", "I drink tea.", "--path", str(path))
    gcmem("add", "I drink coffee.", "--path", str(path))
    chunk_id = spoil(path, 1)
    refused = gcmem("migrate", str(path), postgres_url, code=2)
    assert chunk_id in refused
    assert "--skip-bad" in refused
    done = gcmem("migrate", str(path), postgres_url, "--skip-bad")
    assert chunk_id in done
