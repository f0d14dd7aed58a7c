"""mem0's memories, in the shapes in which it gives them out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gcmem import Chunk, Scope
from gcmem.errors import BadRowError, TransferFormatError
from gcmem.protocols import Store
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder
from gcmem.transfer import Moved, import_file
from gcmem.types import ChunkFilter
from tests.conftest import NOW

ENCODER = HashEncoder()
MEMORY = {
    "id": "b1d3", "memory": "Likes tea", "hash": "abc", "user_id": "ana", "agent_id": None,
    "run_id": "r", "created_at": "2026-01-01T10:00:00-07:00",
    "updated_at": "2026-02-01T10:00:00-07:00", "metadata": {"kind": "taste"}, "score": None,
}  # fmt: skip
NEVER_UPDATED = {
    "id": "c2", "memory": "Lives in Porto", "created_at": "2026-01-01T10:00:00Z",
    "updated_at": None, "metadata": None, "role": "assistant",
}  # fmt: skip


@pytest.fixture
def store() -> Iterator[Store]:
    store = open_embedded(":memory:", encoder=ENCODER, stm_size=5)
    yield store
    store.close()


def take_in(store: Store, folder: Path, content: str, **options: Any) -> Moved:
    file = folder / "mem0.json"
    file.write_text(content)
    return import_file(file, store, encoder=ENCODER, origin="mem0", now=NOW, **options)


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([MEMORY, NEVER_UPDATED]),
        json.dumps({"results": [MEMORY, NEVER_UPDATED], "relations": []}, indent=1),
        f"{json.dumps(MEMORY)}\n{json.dumps(NEVER_UPDATED)}\n",
    ],
)
def test_every_shape_gives_the_same_chunks(store: Store, tmp_path: Path, content: str) -> None:
    moved = take_in(store, tmp_path, content)
    likes, lives = store.log.scan(ChunkFilter())
    assert likes == Chunk(
        id=likes.id, text="Likes tea", at=datetime(2026, 2, 1, 17, tzinfo=UTC), recorded_at=NOW,
        seq=1, scope=Scope(user_id="ana", run_id="r"),
        metadata={"kind": "taste", "mem0_id": "b1d3", "mem0": {"hash": "abc"}},
    )  # fmt: skip
    assert (lives.at, lives.speaker) == (datetime(2026, 1, 1, 10, tzinfo=UTC), "assistant")
    assert moved.verified is not None
    assert take_in(store, tmp_path, content).copied.added == 0


def test_a_memory_that_changed_in_mem0_is_another_observation(store: Store, tmp_path: Path) -> None:
    take_in(store, tmp_path, json.dumps([MEMORY]))
    changed = {**MEMORY, "memory": "Likes coffee", "updated_at": "2026-03-01T10:00:00Z"}
    take_in(store, tmp_path, json.dumps([changed]))
    assert [c.text for c in store.log.scan(ChunkFilter())] == ["Likes tea", "Likes coffee"]


def test_what_is_no_export_of_mem0_is_told(store: Store, tmp_path: Path) -> None:
    for content in ('{"memories": 1}', "3", ""):
        with pytest.raises(TransferFormatError):
            take_in(store, tmp_path, content)
    for bad in (3, {"id": "x"}, {**MEMORY, "metadata": 3}, {"memory": "tea"}):
        with pytest.raises(BadRowError):
            take_in(store, tmp_path, json.dumps([bad]))
    assert take_in(store, tmp_path, json.dumps([3, MEMORY]), skip_bad=True).copied.bad == 1
