"""JSON lines: a header, one chunk per line, and an end line with their count and digest.

{"format": "gcmem-chunks", "version": 1, "encoder": "gcmem-encoder@2", "vectors": false, "count": 2}
{"id": "…", "seq": 1, "at": "…", "recorded_at": "…", "speaker": "user", "text": "…"}
{"id": "…", "seq": 2, "at": "…", "recorded_at": "…", "speaker": "user", "text": "…"}
{"format": "gcmem-chunks", "end": true, "count": 2, "digest": "…"}

A file without the header contains rows that gcmem did not write.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from gcmem.errors import GCMemError, TransferFormatError
from gcmem.indexed_text import TEXT_VERSION
from gcmem.transfer.rows import BadRow, ForeignRows, Row, own_chunk, unpacked
from gcmem.types import Chunk

FORMAT = "gcmem-chunks"
VERSION = 1
GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of an export."""

    encoder: str | None
    vectors: bool
    count: int | None = None
    text_version: int = 1
    """How the embedded texts were made; files from before this was said have version 1."""

    @property
    def vectors_of(self) -> str | None:
        """The encoder whose vectors can be used again; None if there are none."""
        is_current = self.vectors and self.text_version == TEXT_VERSION
        return self.encoder if is_current else None

    def line(self) -> bytes:
        """Returns the header line, with a line break."""
        return line_of(
            {
                "format": FORMAT,
                "version": VERSION,
                "encoder": self.encoder,
                "vectors": self.vectors,
                "count": self.count,
                "text_version": self.text_version,
            }
        )


def end_line(*, count: int, digest: int) -> bytes:
    """Returns the last line of an export."""
    return line_of({"format": FORMAT, "end": True, "count": count, "digest": f"{digest:032x}"})


def line_of(record: Mapping[str, Any]) -> bytes:
    """Returns a record as one line of JSON, with a line break."""
    return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def read_header(record: Any, *, file: str) -> Header | None:
    """Returns the first record as a header, or None if it is a row already."""
    if not isinstance(record, Mapping) or record.get("format") != FORMAT or "text" in record:
        return None
    version = record.get("version")
    if version != VERSION:
        raise TransferFormatError(
            f"{file} has format version {version}; this gcmem reads version {VERSION}; upgrade it"
        )
    count, text_version = record.get("count"), record.get("text_version")
    return Header(
        encoder=record.get("encoder"),
        vectors=bool(record.get("vectors")),
        count=count if isinstance(count, int) else None,
        text_version=text_version if isinstance(text_version, int) else 1,
    )


class JsonlFile:
    """A file of JSON lines, compressed or not, as a source of rows."""

    def __init__(self, path: Path, *, foreign: ForeignRows | None = None) -> None:
        self._path = path
        self._foreign = foreign
        self.name = str(path)
        self.count: int | None
        self.digest: int | None = None
        with self._open() as file:
            first = file.readline().removeprefix(BOM)
            if not first.strip():
                raise TransferFormatError(f"{path} is empty, or begins with an empty line")
            self._header = read_header(_json(first), file=self.name)
            if self._header is None:
                # Counted ahead for the progress bar; much cheaper than parsing.
                self.count = 1 + sum(1 for line in file if line.strip())
            else:
                self.count = self._header.count
        self.encoder_id = None if self._header is None else self._header.vectors_of

    def rows(self, *, vectors: bool) -> Iterator[Row | BadRow]:
        """Yields the rows; raises if a file with a header has no end line, since it is cut off.

        After the last row, `digest` has the value of the end line.
        """
        seen = 0
        ended = self._header is None
        with self._open() as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or (number == 1 and self._header is not None):
                    continue
                if self._header is not None and ended:
                    raise TransferFormatError(
                        f"{self.name}, line {number}: a row after the end line"
                    )
                record = _json(line.removeprefix(BOM) if number == 1 else line)
                if isinstance(record, Mapping) and record.get("format") == FORMAT:
                    self._check_end(record, seen=seen, line=number)
                    ended = True
                    continue
                seen += 1
                yield self._row(record, line=number, vectors=vectors)
        if not ended:
            raise TransferFormatError(
                f"{self.name} is cut off: no end line after {seen} rows; export it again"
            )

    def _check_end(self, record: Mapping[str, Any], *, seen: int, line: int) -> None:
        if not record.get("end"):
            raise TransferFormatError(f"{self.name}, line {line}: a second header")
        if record.get("count") != seen:
            raise TransferFormatError(
                f"{self.name} is damaged: it has {seen} rows, but should have {record.get('count')}"
            )
        self.digest = int(str(record.get("digest")), 16)

    def _row(self, record: Any, *, line: int, vectors: bool) -> Row | BadRow:
        return row_of(
            record,
            line=line,
            foreign=self._foreign if self._header is None else None,
            vectors=vectors and self.encoder_id is not None,
        )

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        with open_binary(self._path) as file:
            yield file


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for reading and decompresses it if needed; errors name the file."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP_MAGIC
        with cast(BinaryIO, gzip.open(path)) if packed else path.open("rb") as file:
            yield file
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise TransferFormatError(f"{path} is cut off or damaged: {error}") from None
    except OSError as error:
        raise TransferFormatError(f"can't read {path}: {error.strerror or error}") from None


def row_of(record: Any, *, line: int, foreign: ForeignRows | None, vectors: bool) -> Row | BadRow:
    """Reads one record, written by gcmem or, with `foreign`, by others."""
    if not isinstance(record, Mapping):
        return BadRow(line=line, reason=record if isinstance(record, str) else "not a JSON object")
    try:
        chunk: Chunk = own_chunk(record) if foreign is None else foreign.chunk(record)
        vector = unpacked(record.get("vector")) if vectors else None
        return Row(line=line, chunk=chunk, vector=vector)
    except GCMemError as error:
        return BadRow(line=line, reason=str(error))


def _json(line: bytes) -> Any:
    """Returns the object on a line, or a string that says what is wrong with it."""
    try:
        record = json.loads(line)
    except UnicodeDecodeError:
        return "not UTF-8"
    except (ValueError, RecursionError):
        return "not JSON: expected one object per line"
    return record if isinstance(record, Mapping) else "not a JSON object"
