"""Moving a real amount between real files: killed half way, and within bounded memory."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gcmem import Chunk
from gcmem.protocols import Store
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder
from gcmem.transfer import export_file, import_file
from gcmem.types import ChunkFilter
from tests.conftest import day

ENCODER = HashEncoder()
EVERYTHING = ChunkFilter()
MOST_GROWTH_MB = 12
"""Ten times the chunks may not take more than this; the file alone is larger."""

MOVER = """
import sys
from pathlib import Path
from gcmem.transfer import export_file, import_file
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder
command, file, path = sys.argv[1:]
encoder = HashEncoder()
store = open_embedded(path, encoder=encoder, stm_size=5)
def progress(done, total):
    print(done, flush=True)
    sys.stdin.readline()
if command == "import":
    import_file(Path(file), store, encoder=encoder, progress=progress)
else:
    export_file(store, Path(file), progress=progress)
"""

MEASURED = """
import resource, sys
from pathlib import Path
from gcmem.transfer import export_file, import_file, migrate
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder
*stores, folder = map(Path, sys.argv[1:])
encoder = HashEncoder()
for path in stores:
    source, by_file, by_store = (
        open_embedded(at, encoder=encoder, stm_size=5)
        for at in (path, folder / f"{path.stem}-file.db", folder / f"{path.stem}-store.db")
    )
    file = folder / f"{path.stem}.jsonl"
    export_file(source, file, vectors=True)
    import_file(file, by_file, encoder=encoder)
    migrate(source, by_store, encoder=encoder)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def open_at(path: Path) -> Store:
    return open_embedded(path, encoder=ENCODER, stm_size=5)


def fill(store: Store, count: int) -> None:
    for start in range(0, count, 1000):
        chunks = [
            Chunk(
                id=f"chunk-{n}",
                text=f"fact {n} " + "x" * 300,  # one long word: the encoder hashes word by word
                at=day(n / 1000),
                recorded_at=day(n / 1000),
                metadata={"n": n},
            )
            for n in range(start, min(start + 1000, count))
        ]
        vectors = ENCODER.encode([chunk.text for chunk in chunks])
        store.append(chunks, vectors, encoder_id=ENCODER.id)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("moving") / "big.db"
    store = open_at(path)
    fill(store, 20_000)
    store.close()
    return path


def killed(command: str, file: Path, path: Path, *, after_batches: int) -> None:
    """Runs a move and kills it with SIGKILL once it has reported so many batches."""
    arguments = [sys.executable, "-c", MOVER, command, str(file), str(path)]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(after_batches):
            assert process.stdout.readline()
            process.stdin.write("\n")
            process.stdin.flush()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def contents(path: Path) -> list[Chunk]:
    store = open_at(path)
    chunks = [replace(chunk, seq=None) for chunk in store.log.scan(EVERYTHING)]
    store.close()
    return chunks


def test_a_killed_import_goes_on_where_it_stopped(big: Path, tmp_path: Path) -> None:
    file, path = tmp_path / "a.jsonl.gz", tmp_path / "new.db"
    source = open_at(big)
    export_file(source, file)
    source.close()
    killed("import", file, path, after_batches=7)
    killed("import", file, path, after_batches=12)
    target = open_at(path)
    before = target.log.count(EVERYTHING)
    assert 7000 <= before < 20_000
    assert before % 1000 == 0  # whole batches only
    moved = import_file(file, target, encoder=ENCODER)
    target.close()
    assert (moved.copied.present, moved.copied.added) == (before, 20_000 - before)
    assert moved.verified is not None
    assert moved.verified.in_order
    assert contents(path) == contents(big)


def test_a_killed_export_goes_on_where_it_stopped(big: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    killed("export", file, big, after_batches=9)
    assert not file.exists()
    source = open_at(big)
    done = export_file(source, file)
    source.close()
    assert done.resumed_from >= 9000
    target = open_at(tmp_path / "new.db")
    assert import_file(file, target, encoder=ENCODER).copied.added == 20_000
    target.close()
    assert contents(tmp_path / "new.db") == contents(big)


def test_memory_does_not_grow_with_the_store(big: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.db"
    store = open_at(small)
    fill(store, 2000)
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(small), str(big), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    small_mb, big_mb = map(float, done.stdout.split())
    assert (tmp_path / "big.jsonl").stat().st_size > 10_000_000
    assert big_mb - small_mb < MOST_GROWTH_MB
