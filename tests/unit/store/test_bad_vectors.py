"""An encoder that returns bad vectors, and a store that took some once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcmem import Memory, Settings, reindex
from gcmem.errors import EncoderError, StoreCorruptError
from gcmem.store.postgres import open_postgres
from gcmem.store.urls import open_store
from gcmem.testing import HashEncoder
from gcmem.vectors import count_unusable
from tests.unit.cli.test_commands import gcmem

Spoil = Callable[[Any], Any]
SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "64-bit floats": lambda blob: np.frombuffer(blob, np.float32).astype(np.float64).tobytes(),
    "not finite": lambda blob: np.full(len(blob) // 4, np.nan, np.float32).tobytes(),
    "too long": lambda blob: (np.frombuffer(blob, np.float32) * 3).tobytes(),
    "cut off": lambda blob: blob[:-3],
    "empty": lambda _: b"",
}


class OddEncoder(HashEncoder):
    """Returns what it is told to."""

    def __init__(self, spoil: Spoil) -> None:
        super().__init__()
        self._spoil = spoil

    def encode(self, texts: Sequence[str]) -> Any:
        return self._spoil(super().encode(texts))


def spoil_rows(path: Path, change: Callable[[bytes], bytes], *, count: int = 1) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT seq, vector FROM vectors ORDER BY seq").fetchall()
        connection.executemany(
            "UPDATE vectors SET vector = ? WHERE seq = ?",
            [(change(blob), seq) for seq, blob in rows[:count]],
        )


def test_64_bit_floats_do_not_poison_the_store_for_others(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=OddEncoder(lambda v: v.astype(np.float64))) as memory:
        memory.add(["I drink tea.", "I live in Porto."])
        assert memory.search("tea", k=1)[0].chunk.text == "I drink tea."
    with Memory(path, encoder=HashEncoder()) as other:
        assert other.search("tea", k=1)[0].chunk.text == "I drink tea."
        other.add("I drink coffee.")
        assert len(other.search("drink").candidates) == 3


@pytest.mark.parametrize(
    "spoil",
    [
        lambda v: np.full_like(v, np.nan),
        lambda v: v * 3,
        lambda v: v[:, :-1],
        lambda v: v[1:],
        lambda v: v.astype(np.int32),
        lambda v: v.tolist()[0],
        lambda v: None,
    ],
)
def test_a_broken_encoder_is_named_wherever_it_is_asked(tmp_path: Path, spoil: Spoil) -> None:
    path = tmp_path / "m.db"
    manual = Settings(judge="manual")
    with Memory(path, encoder=HashEncoder(), settings=manual) as memory:
        memory.add("I drink tea.")
    with Memory(path, encoder=OddEncoder(spoil), settings=manual) as memory:
        for call in (
            lambda: memory.add("I drink coffee."),
            lambda: memory.search("tea"),
            lambda: memory.ask("tea?"),
            memory.judge,
        ):
            with pytest.raises(EncoderError, match="hash-32@1"):
                call()
    with pytest.raises(EncoderError, match="hash-32@1"):
        reindex(path, encoder=OddEncoder(spoil))
    with Memory(path, encoder=HashEncoder()) as memory:
        assert [c.text for c in memory.get_all()] == ["I drink tea."]
        assert len(memory.search("tea")) == 1


@pytest.mark.parametrize("change", SPOILT.values(), ids=SPOILT)
def test_a_store_with_bad_vectors_says_so_and_is_mended_by_reindex(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "m.db"
    encoder = HashEncoder()
    with Memory(path, encoder=encoder) as memory:
        memory.add([f"tea {n}" for n in range(5)])
    spoil_rows(path, change, count=2)
    with Memory(path, encoder=encoder) as memory:
        with pytest.raises(StoreCorruptError, match=r"2 of 5 vectors.*gcmem reindex"):
            memory.search("tea")
        assert (
            count_unusable(memory.store.log, memory.store.index, dimensions=encoder.dimensions) == 2
        )
        assert len(memory.get_all()) == 5
    assert reindex(path, encoder=encoder) == 5
    with Memory(path, encoder=encoder) as memory:
        assert len(memory.search("tea").candidates) == 5
        assert (
            count_unusable(memory.store.log, memory.store.index, dimensions=encoder.dimensions) == 0
        )


def test_a_bad_vector_is_not_moved_to_another_store(tmp_path: Path) -> None:
    from gcmem.transfer import migrate

    encoder = HashEncoder()
    path = tmp_path / "m.db"
    with Memory(path, encoder=encoder) as memory:
        memory.add([f"tea {n}" for n in range(5)])
    for change in SPOILT.values():
        spoil_rows(path, change, count=2)
        source = open_store(str(path), encoder=encoder, stm_size=0)
        target = open_store(":memory:", encoder=encoder, stm_size=0)
        moved = migrate(source, target, encoder=encoder)
        assert (moved.copied.added, moved.copied.embedded) == (5, 2)
        assert count_unusable(target.log, target.index, dimensions=encoder.dimensions) == 0
        target.close()
        source.close()
        reindex(path, encoder=encoder)


def test_the_doctor_counts_bad_vectors_and_names_the_command(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    gcmem("add", "I drink tea.", path=path)
    gcmem("add", "I live in Porto.", path=path)
    assert json.loads(gcmem("doctor", "--json", path=path))["problems"] == []
    spoil_rows(path, SPOILT["64-bit floats"])
    (problem,) = json.loads(subprocess_output("doctor", "--json", "--path", str(path), code=1))[
        "problems"
    ]
    assert "1 of 2 chunks" in problem
    assert f"gcmem reindex --path {path}" in problem
    assert "gcmem reindex" in gcmem("search", "tea", path=path, code=1)
    gcmem("reindex", path=path)
    assert json.loads(gcmem("doctor", "--json", path=path))["problems"] == []


def subprocess_output(*arguments: str, code: int) -> str:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "gcmem", *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_bad_vectors_in_postgresql_are_counted_and_mended(postgres_url: str) -> None:
    encoder = HashEncoder()
    with Memory(
        store=open_postgres(postgres_url, encoder=encoder, stm_size=5), encoder=encoder
    ) as memory:
        memory.add([f"tea {n}" for n in range(4)])
        log, index = memory.store.log, memory.store.index
        # PostgreSQL takes no vector that is not finite, but any length and any width.
        with log._database.transaction() as connection:  # type: ignore[attr-defined]
            connection.execute("UPDATE gcmem_vectors SET vector = vector * vector WHERE seq = 1")
            connection.execute("UPDATE gcmem_vectors SET vector = '[1, 0]' WHERE seq = 2")
        assert count_unusable(log, index, dimensions=encoder.dimensions) == 2
        with pytest.raises(StoreCorruptError, match="gcmem reindex"):
            memory.search("tea")
        assert index.rebuild(encoder) == 4
        assert count_unusable(log, index, dimensions=encoder.dimensions) == 0
        assert len(memory.search("tea").candidates) == 4
