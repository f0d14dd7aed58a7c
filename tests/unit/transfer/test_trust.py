"""Trust of imported rows is given by who imports, not by the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gcmem import Chunk
from gcmem.errors import InvalidInputError
from gcmem.protocols import Store
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder
from gcmem.transfer import export_file, import_file, migrate
from gcmem.types import ChunkFilter

ENCODER = HashEncoder()
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_embedded(tmp_path / "target.db", encoder=ENCODER, stm_size=5)
    yield store
    store.close()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Store]:
    """A store of our own, with levels from 0 to 100."""
    store = open_embedded(tmp_path / "source.db", encoder=ENCODER, stm_size=5)
    chunks = [
        Chunk(id=f"c{trust}", text=f"level={trust}", at=AT, recorded_at=AT, trust=trust)
        for trust in (0, 1, 100)
    ]
    store.append(chunks, ENCODER.encode([c.text for c in chunks]), encoder_id=ENCODER.id)
    yield store
    store.close()


def levels(store: Store) -> dict[str, int]:
    return {chunk.text: chunk.trust for chunk in store.log.scan(ChunkFilter())}


def rows(path: Path) -> Path:
    given: list[dict[str, Any]] = [
        {"text": "no level", "at": AT.isoformat()},
        {"text": "level 0", "at": AT.isoformat(), "trust": 0},
        {"text": "level 100", "at": AT.isoformat(), "trust": 100},
    ]
    path.write_text("\n".join(json.dumps(row) for row in given) + "\n")
    return path


@pytest.mark.parametrize(
    ("options", "expected", "lowered"),
    [
        ({}, {"no level": 1, "level 0": 0, "level 100": 1}, 1),
        ({"trust": 0}, {"no level": 0, "level 0": 0, "level 100": 0}, 1),
        ({"trust": 7}, {"no level": 1, "level 0": 0, "level 100": 7}, 1),
        ({"trust": 100}, {"no level": 1, "level 0": 0, "level 100": 100}, 0),
    ],
)
def test_a_row_gets_no_more_trust_than_the_importer_gives(
    tmp_path: Path, store: Store, options: dict[str, int], expected: dict[str, int], lowered: int
) -> None:
    moved = import_file(rows(tmp_path / "rows.jsonl"), store, encoder=ENCODER, **options)  # type: ignore[arg-type]
    assert levels(store) == expected
    assert moved.copied.lowered == lowered
    assert moved.verified is not None


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_header_of_an_export_is_no_reason_to_believe_it(
    tmp_path: Path, source: Store, store: Store, suffix: str
) -> None:
    file = tmp_path / f"export.{suffix}"
    export_file(source, file)
    import_file(file, store, encoder=ENCODER)
    assert levels(store) == {"level=0": 0, "level=1": 1, "level=100": 1}
    again = import_file(file, store, encoder=ENCODER, trust=100)
    assert again.copied.added == 0
    assert levels(store)["level=100"] == 1  # what is there stays as it is


def test_an_export_comes_back_as_it_was_if_the_importer_says_so(
    tmp_path: Path, source: Store, store: Store
) -> None:
    export_file(source, tmp_path / "export.jsonl")
    import_file(tmp_path / "export.jsonl", store, encoder=ENCODER, trust=100)
    assert levels(store) == levels(source)


def test_a_migration_between_own_stores_keeps_trust(source: Store, store: Store) -> None:
    migrate(source, store, encoder=ENCODER)
    assert levels(store) == levels(source)


def test_a_level_that_there_is_not_is_refused(tmp_path: Path, store: Store) -> None:
    for trust in (-1, 101, True):
        with pytest.raises(InvalidInputError, match="trust="):
            import_file(rows(tmp_path / "r.jsonl"), store, encoder=ENCODER, trust=trust)
