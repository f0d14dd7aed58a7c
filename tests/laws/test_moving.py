"""The law of moving: what a log holds comes back from every kind of file as it was."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcmem import Chunk, Scope
from gcmem.indexed_text import TEXT_VERSION, dense_texts
from gcmem.protocols import Store
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder
from gcmem.transfer import export_file, import_file
from gcmem.types import MAX_TRUST, ChunkFilter

ENCODER = HashEncoder()
EVERYTHING = ChunkFilter()

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
names = words.filter(lambda text: text.strip())
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
moments = st.datetimes(timezones=st.just(UTC))
chunks = st.lists(
    st.builds(
        Chunk,
        id=st.uuids().map(str) | names,
        text=words,
        at=moments,
        recorded_at=moments,
        scope=st.builds(
            Scope,
            user_id=st.none() | names,
            agent_id=st.none() | names,
            run_id=st.none() | names,
        ),
        speaker=words,
        session=st.none() | words,
        metadata=st.dictionaries(words, json_values, max_size=3),
    ),
    max_size=4,
    unique_by=lambda chunk: chunk.id,
)


def open_memory() -> Store:
    return open_embedded(":memory:", encoder=ENCODER, stm_size=5)


def fill(store: Store, items: Sequence[Chunk]) -> None:
    vectors = ENCODER.encode(dense_texts(items, version=TEXT_VERSION))
    store.append(items, vectors, encoder_id=ENCODER.id)


def contents(store: Store) -> list[Chunk]:
    return [replace(chunk, seq=None) for chunk in store.log.scan(EVERYTHING)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
@pytest.mark.parametrize("vectors", [False, True])
@settings(max_examples=30)
@given(items=chunks)
def test_what_is_exported_comes_back_as_it_was(
    name: str, vectors: bool, items: list[Chunk]
) -> None:
    before, after = open_memory(), open_memory()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        fill(before, items)
        export_file(before, file, vectors=vectors)
        moved = import_file(file, after, encoder=ENCODER, trust=MAX_TRUST)
        again = import_file(file, after, encoder=ENCODER, trust=MAX_TRUST)
        assert [path.name for path in Path(folder).iterdir()] == [name]
    assert contents(after) == contents(before)
    assert [json.dumps(c.metadata) for c in contents(after)] == [
        json.dumps(c.metadata) for c in contents(before)
    ]
    assert moved.copied.added == again.copied.present == len(items)
    assert again.copied.added == 0
    assert moved.copied.embedded == (0 if vectors else len(items))
    ids = [chunk.id for chunk in items]
    old, new = before.index.vectors(ids), after.index.vectors(ids)
    assert all(np.array_equal(old[i], new[i]) for i in ids)
    before.close()
    after.close()
