"""Moves chunks between stores and files: export, import, migrate and verify."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Literal

from gcmem.errors import InvalidInputError, TransferFormatError
from gcmem.ingest.chunks import check_trust
from gcmem.protocols import Encoder, Progress, Store
from gcmem.transfer.copying import Copied, copy_rows
from gcmem.transfer.exporting import Exported, FileFormat, export_file
from gcmem.transfer.jsonl import FORMAT, JsonlFile, open_binary
from gcmem.transfer.mem0 import Mem0File
from gcmem.transfer.parquet import MAGIC, ParquetFile
from gcmem.transfer.rows import ForeignRows, Source
from gcmem.transfer.stores import StoreRows, open_source, open_store
from gcmem.transfer.verifying import Verified, verify
from gcmem.types import TRUSTED, check_choice

__all__ = [
    "Copied",
    "Exported",
    "FileFormat",
    "FileOrigin",
    "Moved",
    "StoreRows",
    "Verified",
    "export_file",
    "import_file",
    "is_export",
    "migrate",
    "open_source",
    "open_store",
    "verify",
]

FileOrigin = Literal["gcmem", "mem0"]
HEADER_BYTES = 64
"""Number of bytes at the start of a file that show whether it is an export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The result of a move: what was copied and, unless skipped, the verification."""

    source: str
    target: str
    copied: Copied
    verified: Verified | None


def import_file(
    path: Path,
    store: Store,
    *,
    encoder: Encoder,
    origin: FileOrigin = "gcmem",
    tz: tzinfo | None = None,
    now: datetime | None = None,
    trust: int = TRUSTED,
    skip_bad: bool = False,
    check: bool = True,
    progress: Progress | None = None,
    check_progress: Progress | None = None,
) -> Moved:
    """Imports a file of chunks: an export, rows in JSON lines or Parquet, or mem0's memories.

    Chunks that are stored already are skipped. In rows that gcmem did not write, times without an
    offset are read as `tz`; rows without a recording time get `now`. No row gets a higher trust
    level than `trust`, whatever the file says: anyone can write a file.
    """
    check_trust(trust)
    check_choice(origin, name="origin", allowed=("gcmem", "mem0"))
    now = now or datetime.now(UTC)
    source = _open_file(path, origin=origin, foreign=ForeignRows(now=now, tz=tz))
    copied = copy_rows(
        source,
        store,
        encoder=encoder,
        now=now,
        skip_bad=skip_bad,
        max_trust=trust,
        progress=progress,
    )
    return Moved(
        source=source.name,
        target=store.log.location,
        copied=copied,
        verified=verify(source, store.log, trust=False, progress=check_progress) if check else None,
    )


def migrate(
    source: Store,
    target: Store,
    *,
    encoder: Encoder,
    skip_bad: bool = False,
    check: bool = True,
    progress: Progress | None = None,
    check_progress: Progress | None = None,
) -> Moved:
    """Copies every chunk of one store into another, with its vector if the encoders are the same.

    Chunks added to the source meanwhile are left for the next call; chunks already in the target
    are skipped. Trust levels are kept: both stores belong to the caller. A chunk that can't be
    stored (an old store may contain one) raises an error that names it, or is left out with
    `skip_bad`.
    """
    if source.log.location == target.log.location:
        raise InvalidInputError(f"{source.log.location} is both source and target")
    rows = StoreRows(source)
    copied = copy_rows(
        rows,
        target,
        encoder=encoder,
        now=datetime.now(UTC),
        skip_bad=skip_bad,
        progress=progress,
    )
    return Moved(
        source=rows.name,
        target=target.log.location,
        copied=copied,
        verified=verify(rows, target.log, progress=check_progress) if check else None,
    )


def is_export(path: Path) -> bool:
    """Returns whether a file begins like one that `export_file` wrote."""
    try:
        with open_binary(path) as file:
            first = file.read(HEADER_BYTES)
    except TransferFormatError:
        return False
    return first.startswith((MAGIC, f'{{"format":"{FORMAT}"'.encode()))


def _open_file(path: Path, *, origin: FileOrigin, foreign: ForeignRows) -> Source:
    if origin == "mem0":
        return Mem0File(path, foreign=foreign)
    with open_binary(path) as file:
        magic = file.read(len(MAGIC))
    return (ParquetFile if magic == MAGIC else JsonlFile)(path, foreign=foreign)
