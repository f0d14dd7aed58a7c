"""The datasets shipped with gcmem, stored as files."""

from __future__ import annotations

import gzip
import hashlib
import io
from importlib.resources import as_file, files
from pathlib import Path

from gcmem.bench.data.build import DATASETS
from gcmem.bench.data.instances import Instance, read
from gcmem.errors import InvalidInputError

FOLDER = files(__package__) / "sets"


def shipped(name: str) -> tuple[Instance, ...]:
    """Returns a shipped dataset by name."""
    if name not in DATASETS:
        raise InvalidInputError(f"no dataset {name!r}: pass one of {', '.join(DATASETS)}")
    with as_file(FOLDER / f"{name}.jsonl.gz") as path:
        return tuple(read(_text(path), where=path.name))


def shipped_hash(name: str) -> str:
    """Returns the SHA-256 of a dataset's JSONL."""
    with as_file(FOLDER / f"{name}.jsonl.gz") as path:
        return hashlib.sha256(_text(path).encode()).hexdigest()


def write_shipped(text: str, path: Path) -> None:
    """Writes JSONL as gzip, with the same bytes on every run."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.write(text.encode())
    path.write_bytes(packed.getvalue())


def _text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()
