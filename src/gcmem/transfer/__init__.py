"""Moving chunks between stores and files: export, import, migrate, and the proof that all came."""

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
from gcmem.transfer.stores import LogRows, open_store
from gcmem.transfer.verifying import Verified, verify
from gcmem.types import TRUSTED, check_choice

__all__ = [
    "Copied",
    "Exported",
    "FileFormat",
    "FileOrigin",
    "LogRows",
    "Moved",
    "Verified",
    "export_file",
    "import_file",
    "is_export",
    "migrate",
    "open_store",
    "verify",
]

FileOrigin = Literal["gcmem", "mem0"]
HEADER_BYTES = 64
"""An export says within so many bytes that it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a move did, and the proof, unless it was left out."""

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
    """Takes a file of chunks in: an export, rows in JSON lines or Parquet, or mem0's memories.

    Chunks that are there already are passed over. `tz` is meant by times without an offset in rows
    that gcmem did not write; `now` is the recording time of rows that carry none. `trust` is the
    highest trust level that a row gets, whatever the file says: anybody can write a file.
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
    """Copies every chunk of one store into another, with its vector where the encoders agree.

    What the source gets meanwhile is left for the next call; what the target has is passed over.
    Trust levels are kept: both stores are the caller's own.
    A chunk that no store can keep (an old store may hold one) stops the copy with an error that
    names it; `skip_bad` leaves such chunks out.
    """
    if source.log.location == target.log.location:
        raise InvalidInputError(f"{source.log.location} is both source and target")
    rows = LogRows(source.log)
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
    """Tells whether a file is one that `export_file` wrote, by how it begins."""
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
