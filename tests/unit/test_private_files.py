"""What gcmem writes is for its owner's eyes only."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcmem import Memory
from gcmem.judge.fitness import save_fitness
from gcmem.private_files import make_private_file, make_private_folder, write_private
from gcmem.serve.keys import KeyStore
from gcmem.store.urls import open_store
from gcmem.testing import HashEncoder
from gcmem.transfer import export_file
from tests.unit.cli.test_commands import gcmem


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_store_its_log_and_the_folders_made_for_it_are_private(tmp_path: Path) -> None:
    path = tmp_path / "made" / "for it" / "m.db"
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add("a fact", user_id="ana")
        found = {file.name: oct(mode(file)) for file in path.parent.iterdir()}
        assert found == dict.fromkeys(("m.db", "m.db-wal", "m.db-shm"), "0o600")
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


def test_a_file_or_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o750)
    path = folder / "m.db"
    Memory(path, encoder=HashEncoder()).close()
    path.chmod(0o640)
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add("a fact", user_id="ana")
        assert mode(path.with_name("m.db-wal")) == 0o640
    assert (mode(path), mode(folder)) == (0o640, 0o750)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_an_export_is_private_from_its_first_byte(
    memory: Memory, tmp_path: Path, name: str
) -> None:
    memory.add([f"fact {n}" for n in range(1500)], user_id="ana")
    seen: dict[str, str] = {}

    def look(done: int, total: int) -> None:
        seen.update({p.name: oct(mode(p)) for p in (tmp_path / "out").iterdir()})

    (tmp_path / "out").mkdir()
    export_file(memory.store, tmp_path / "out" / name, progress=look)
    assert set(seen) == {f"{name}.part", f"{name}.part.json"}
    assert set(seen.values()) == {"0o600"}
    assert mode(tmp_path / "out" / name) == 0o600


def test_keys_are_private(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "made" / "m.db.keys")
    keys.create("ana")
    keys.close()
    assert mode(tmp_path / "made" / "m.db.keys") == 0o600
    assert mode(tmp_path / "made") == 0o700


def test_the_default_folder_is_private(tmp_path: Path) -> None:
    script = "from gcmem import Memory; from gcmem.testing import HashEncoder; "
    script += "Memory(encoder=HashEncoder()).add('a fact')"
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={**os.environ, "HOME": str(tmp_path)}
    )
    assert mode(tmp_path / ".gcmem") == 0o700
    assert mode(tmp_path / ".gcmem" / "memory.db") == 0o600


def test_labelled_pairs_of_a_benchmark_are_private(tmp_path: Path) -> None:
    write_private(tmp_path / "rows.jsonl", "a memory\n")
    assert mode(tmp_path / "rows.jsonl") == 0o600
    write_private(tmp_path / "rows.jsonl", "another\n")
    assert (tmp_path / "rows.jsonl").read_text() == "another\n"


def test_making_a_private_file_does_not_open_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert make_private_file(path) is True
    path.write_text("content")
    assert make_private_file(path) is False
    assert path.read_text() == "content"
    make_private_folder(tmp_path)
    assert os.umask(0o022) == 0o022


def test_doctor_warns_of_a_store_that_others_may_read(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    gcmem("add", "I live in Porto.", path=path)
    assert "chmod" not in gcmem("doctor", path=path)
    path.chmod(0o644)
    shown = gcmem("doctor", path=path).replace("\n", " ")
    assert f"chmod 600 {path}" in " ".join(shown.split())
    assert "All well" not in shown


def test_what_was_measured_of_an_oracle_is_kept_in_a_private_folder(tmp_path: Path) -> None:
    save_fitness("o@1", "unfit", record=tmp_path / ".gcmem" / "qualified.json")
    assert mode(tmp_path / ".gcmem") == 0o700


def test_a_folder_of_the_local_qdrant_is_private(tmp_path: Path) -> None:
    store = open_store(
        f"sqlite:///:memory:?index=qdrant://{tmp_path}/made", encoder=HashEncoder(), stm_size=5
    )
    store.close()
    assert mode(tmp_path / "made") == 0o700
