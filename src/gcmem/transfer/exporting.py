"""Exports a store's chunks into a file, which appears only when it is complete.

Rows go to FILE.part in batches; FILE.part.json records the rows that are safely written, so that a
stopped export continues from there. Parquet can't be appended to, so it is written at the end from
FILE.part.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from gcmem.errors import StoreUnavailableError
from gcmem.private_files import make_private_file, write_private
from gcmem.protocols import ChunkLog, Progress, Store
from gcmem.transfer.jsonl import Header, JsonlFile, end_line, line_of, open_binary
from gcmem.transfer.parquet import load_pyarrow, write_parquet
from gcmem.transfer.rows import (
    MODULUS,
    Row,
    canonical,
    digest_of,
    own_chunk,
    packed,
    record_of,
)
from gcmem.transfer.stores import BATCH, StoreRows
from gcmem.types import ChunkFilter

FileFormat = Literal["jsonl", "parquet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The result of an export; `resumed_from` counts the rows from an earlier, stopped one."""

    file: str
    format: FileFormat
    chunks: int
    digest: str
    resumed_from: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cursor:
    """The rows safely written to FILE.part, and the export they belong to."""

    request: dict[str, Any]
    header: dict[str, Any]
    up_to_seq: int
    seq: int = 0
    rows: int = 0
    size_bytes: int = 0
    digest: int = 0


def export_file(
    store: Store,
    path: Path,
    *,
    where: ChunkFilter | None = None,
    format: FileFormat | None = None,
    vectors: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Writes the matching chunks into a file in log order; replaces an existing file.

    Without `format`, the suffix decides; `.gz` compresses JSON lines. If interrupted, the same
    call continues where it stopped.
    """
    format = format or ("parquet" if path.suffix == ".parquet" else "jsonl")
    if format == "parquet":
        load_pyarrow()  # reports a missing extra now, not after all rows are written
    part = _Part(path, packed=path.suffix == ".gz" and format == "jsonl")
    where = where or ChunkFilter()
    try:
        cursor, resumed_from = part.begin(store, where=where, vectors=vectors)
        cursor = _write_rows(part, cursor, store, where=where, progress=progress)
        cursor = _drop_forgotten(part, cursor, store.log)
        part.append(end_line(count=cursor.rows, digest=cursor.digest))
        if format == "jsonl":
            os.replace(part.rows, path)
        else:
            staged = JsonlFile(part.rows)
            temporary = path.with_name(path.name + ".tmp")
            make_private_file(temporary)
            rows = (row for row in staged.rows(vectors=vectors) if isinstance(row, Row))
            header = Header(**{**cursor.header, "count": cursor.rows})
            write_parquet(temporary, rows, header=header, digest=cursor.digest)
            os.replace(temporary, path)
        part.remove()
    except OSError as error:
        raise StoreUnavailableError(f"can't write {path}: {error.strerror or error}") from error
    return Exported(
        file=str(path),
        format=format,
        chunks=cursor.rows,
        digest=f"{cursor.digest:032x}",
        resumed_from=resumed_from,
    )


def _write_rows(
    part: _Part,
    cursor: _Cursor,
    store: Store,
    *,
    where: ChunkFilter,
    progress: Progress | None,
) -> _Cursor:
    header = Header(**cursor.header)
    rows = StoreRows(store, where=where, after_seq=cursor.seq, up_to_seq=cursor.up_to_seq)
    lines: list[bytes] = []
    digest, count, seq = cursor.digest, cursor.rows, cursor.seq

    def flush() -> None:
        nonlocal cursor
        part.append(b"".join(lines))
        lines.clear()
        cursor = replace(cursor, seq=seq, rows=count, digest=digest, size_bytes=part.size_bytes)
        part.save(cursor)
        if progress is not None:
            progress(count, max(count, header.count or 0))

    for row in rows.rows(vectors=header.vectors):
        record = record_of(row.chunk)
        if row.vector is not None:
            record["vector"] = packed(row.vector)
        lines.append(line_of(record))
        digest = (digest + digest_of(canonical(row.chunk))) % MODULUS
        count, seq = count + 1, row.line
        if len(lines) == BATCH:
            flush()
    flush()
    return cursor


def _drop_forgotten(part: _Part, cursor: _Cursor, log: ChunkLog) -> _Cursor:
    """Removes the rows of chunks that were forgotten after their rows were written.

    An export takes a while, and a stopped one may continue days later.
    """
    gone: set[str] = set()
    for records in part.batches():
        ids = [record["id"] for record in records]
        gone |= set(ids) - log.get(ids).keys()
    if not gone:
        return cursor
    digest = cursor.digest
    with part.rewriting(Header(**cursor.header).line()) as old:
        for records in old.batches():
            kept = [record for record in records if record["id"] not in gone]
            part.append(b"".join(map(line_of, kept)))
            for record in records:
                if record["id"] in gone:
                    digest -= digest_of(canonical(own_chunk(record)))
    return replace(
        cursor, rows=cursor.rows - len(gone), digest=digest % MODULUS, size_bytes=part.size_bytes
    )


class _Part:
    """FILE.part and FILE.part.json."""

    def __init__(self, path: Path, *, packed: bool) -> None:
        self.rows = path.with_name(path.name + ".part")
        self._state = path.with_name(path.name + ".part.json")
        self._packed = packed
        self.size_bytes = 0

    def begin(self, store: Store, *, where: ChunkFilter, vectors: bool) -> tuple[_Cursor, int]:
        """Returns where to continue, and how many rows are written already."""
        scope, encoder_id = where.scope, store.index.encoder_id
        request = {
            "store": store.log.location,
            "encoder": encoder_id,
            "scope": [scope.user_id, scope.agent_id, scope.run_id],
            "vectors": vectors,
            "packed": self._packed,
        }
        known = self._load()
        if known is not None and known.request == request:
            self.size_bytes = known.size_bytes
            return known, known.rows
        header = Header(
            encoder=encoder_id,
            vectors=vectors,
            count=store.log.count(where),
            text_version=store.index.text_version,
        )
        self._begin(header.line())
        return _Cursor(
            request=request, header=asdict(header), up_to_seq=store.log.state().last_seq
        ), 0

    def append(self, content: bytes) -> None:
        """Writes after the safe rows; compresses each piece separately, so it can be truncated."""
        if not content:
            return
        with self.rows.open("r+b") as file:
            file.truncate(self.size_bytes)
            file.seek(self.size_bytes)
            file.write(gzip.compress(content, mtime=0) if self._packed else content)
            file.flush()
            os.fsync(file.fileno())
            self.size_bytes = file.tell()

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        """Yields the safely written rows as records, in batches."""
        with self.rows.open("r+b") as file:
            file.truncate(self.size_bytes)
        with open_binary(self.rows) as file:
            file.readline()  # the header
            while lines := list(islice(file, BATCH)):
                yield [json.loads(line) for line in lines]

    @contextmanager
    def rewriting(self, header: bytes) -> Iterator[_Part]:
        """Yields the old rows, while the caller appends to a new, empty file."""
        old = copy(self)
        old.rows = self.rows.with_name(self.rows.name + ".old")
        self._begin(header, keep_as=old.rows)
        try:
            yield old
        finally:
            old.rows.unlink()

    def _begin(self, header: bytes, *, keep_as: Path | None = None) -> None:
        self._state.unlink(missing_ok=True)  # first: it must never describe other rows
        if keep_as is not None:
            os.replace(self.rows, keep_as)
        self.rows.unlink(missing_ok=True)
        make_private_file(self.rows)
        self.size_bytes = 0
        self.append(header)

    def save(self, cursor: _Cursor) -> None:
        """Records which rows are safely written."""
        temporary = self._state.with_name(self._state.name + ".tmp")
        write_private(temporary, json.dumps(asdict(cursor)))
        os.replace(temporary, self._state)

    def _load(self) -> _Cursor | None:
        """Returns the saved state; None if it is unreadable or describes more than was written."""
        try:
            cursor = _Cursor(**json.loads(self._state.read_text("utf-8")))
            return cursor if self.rows.stat().st_size >= cursor.size_bytes else None
        except (OSError, ValueError, TypeError):
            return None

    def remove(self) -> None:
        """Deletes both files."""
        self.rows.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)
