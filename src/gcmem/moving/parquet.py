"""Parquet, through pyarrow (the extra `parquet`): the same rows in columns, metadata as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gcmem.errors import MissingExtraError, TransferFormatError
from gcmem.moving.jsonl import FORMAT, Header, read_header, row_of
from gcmem.moving.rows import BadRow, ForeignRows, Row, packed, record_of

MAGIC = b"PAR1"
GROUP = 2_000
"""Rows that are written and read together."""


def write_parquet(path: Path, rows: Iterable[Row], *, header: Header, digest: int) -> None:
    """Writes the rows group by group."""
    pa, parquet = load_pyarrow()
    moment = pa.timestamp("us", tz="UTC")
    types = {
        "id": pa.string(), "seq": pa.int64(), "at": moment, "recorded_at": moment,
        "user_id": pa.string(), "agent_id": pa.string(), "run_id": pa.string(),
        "speaker": pa.string(), "session": pa.string(), "text": pa.string(),
        "metadata": pa.string(),
    }  # fmt: skip
    if header.vectors:
        types["vector"] = pa.list_(pa.float32())
    about = {**json.loads(header.line()), "digest": f"{digest:032x}"}
    schema = pa.schema(types, metadata={FORMAT: json.dumps(about)})
    waiting = iter(rows)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(waiting, GROUP)):
            records = [_columns(row) for row in group]
            writer.write_batch(pa.RecordBatch.from_pylist(records, schema=schema))


def _columns(row: Row) -> dict[str, Any]:
    record = record_of(row.chunk)
    record |= {"at": row.chunk.at, "recorded_at": row.chunk.recorded_at}
    if "metadata" in record:
        record["metadata"] = json.dumps(record["metadata"], ensure_ascii=False)
    if row.vector is not None:
        record["vector"] = row.vector.tolist()
    return record


class ParquetFile:
    """A Parquet file as a source of rows; one that gcmem did not write is read as foreign rows."""

    def __init__(self, path: Path, *, foreign: ForeignRows) -> None:
        _, parquet = load_pyarrow()
        self.name = str(path)
        self._foreign = foreign
        try:
            self._file = parquet.ParquetFile(path, memory_map=True)
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            raise TransferFormatError(f"{path} is cut off or damaged: {error}") from None
        about = (self._file.schema_arrow.metadata or {}).get(FORMAT.encode())
        record = json.loads(about) if about else None
        self._header = read_header(record, file=self.name)
        self.count: int | None = self._file.metadata.num_rows
        self.digest = int(record["digest"], 16) if record else None
        vectors = self._header is not None and self._header.vectors
        self.encoder_id = self._header.encoder if self._header and vectors else None

    def rows(self, *, vectors: bool) -> Iterator[Row | BadRow]:
        """Yields the rows; their number stands for the line."""
        wanted = vectors and self.encoder_id is not None
        columns = [c for c in self._file.schema_arrow.names if wanted or c != "vector"]
        number = 0
        try:
            for batch in self._file.iter_batches(batch_size=GROUP, columns=columns):
                for record in batch.to_pylist():
                    number += 1
                    if wanted and record.get("vector") is not None:
                        record["vector"] = packed(np.array(record["vector"], np.float32))
                    yield row_of(
                        record,
                        line=number,
                        foreign=None if self._header else self._foreign,
                        vectors=wanted,
                    )
        except (OSError, ValueError) as error:
            raise TransferFormatError(f"{self.name} is damaged: {error}") from None


def load_pyarrow() -> tuple[Any, Any]:
    """Returns pyarrow and its Parquet module; raises where the extra is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("parquet", package="pyarrow") from None
    return pyarrow, pyarrow.parquet
