"""Parquet, through pyarrow (the extra `parquet`): the same rows in columns, metadata as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gcmem.errors import MissingExtraError, TransferFormatError
from gcmem.protocols import Vectors
from gcmem.transfer.jsonl import FORMAT, Header, read_header, row_of
from gcmem.transfer.rows import BadRow, ForeignRows, Row, record_of

MAGIC = b"PAR1"
GROUP = 1_000
"""Number of rows that are written and read together."""


def write_parquet(path: Path, rows: Iterable[Row], *, header: Header, digest: int) -> None:
    """Writes the rows in groups."""
    pa, parquet = load_pyarrow()
    moment = pa.timestamp("us", tz="UTC")
    types = {
        "id": pa.string(), "seq": pa.int64(), "at": moment, "recorded_at": moment,
        "user_id": pa.string(), "agent_id": pa.string(), "run_id": pa.string(),
        "speaker": pa.string(), "session": pa.string(), "text": pa.string(),
        "metadata": pa.string(), "trust": pa.int64(),
    }  # fmt: skip
    if header.vectors:
        types["vector"] = pa.list_(pa.float32())
    about = {**json.loads(header.line()), "digest": f"{digest:032x}"}
    schema = pa.schema(types, metadata={FORMAT: json.dumps(about)})
    waiting = iter(rows)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(waiting, GROUP)):
            batch = pa.RecordBatch.from_pylist([_record(row) for row in group], schema=schema)
            if header.vectors:
                batch = batch.set_column(len(types) - 1, "vector", _vector_column(pa, group))
            writer.write_batch(batch)


def _vector_column(pa: Any, group: list[Row]) -> Any:
    """Returns the vectors as one block; as Python numbers they would take ten times the memory."""
    vectors = [np.empty(0) if row.vector is None else row.vector for row in group]
    offsets = np.cumsum([0, *(len(vector) for vector in vectors)], dtype=np.int32)
    values = np.concatenate(vectors).astype(np.float32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def _record(row: Row) -> dict[str, Any]:
    record = record_of(row.chunk)
    record |= {"at": row.chunk.at, "recorded_at": row.chunk.recorded_at}
    if "metadata" in record:
        record["metadata"] = json.dumps(record["metadata"], ensure_ascii=False)
    return record


class ParquetFile:
    """A Parquet file as a source of rows; a file that gcmem did not write has foreign rows."""

    def __init__(self, path: Path, *, foreign: ForeignRows) -> None:
        _, parquet = load_pyarrow()
        self.name = str(path)
        self._foreign = foreign
        try:
            self._file = parquet.ParquetFile(path)
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            raise TransferFormatError(f"{path} is cut off or damaged: {error}") from None
        about = (self._file.schema_arrow.metadata or {}).get(FORMAT.encode())
        record = json.loads(about) if about else None
        self._header = read_header(record, file=self.name)
        self.count: int | None = self._file.metadata.num_rows
        self.digest = int(record["digest"], 16) if record else None
        self.encoder_id = None if self._header is None else self._header.vectors_of

    def rows(self, *, vectors: bool) -> Iterator[Row | BadRow]:
        """Yields the rows; `line` is the row's number."""
        wanted = vectors and self.encoder_id is not None
        columns = [c for c in self._file.schema_arrow.names if wanted or c != "vector"]
        foreign = None if self._header else self._foreign
        number = 0
        try:
            for batch in self._batches(columns):
                found = _vectors(batch) if wanted else [None] * batch.num_rows
                if wanted:
                    batch = batch.drop_columns("vector")
                for record, vector in zip(batch.to_pylist(), found, strict=True):
                    number += 1
                    row = row_of(record, line=number, foreign=foreign, vectors=False)
                    yield replace(row, vector=vector) if isinstance(row, Row) else row
        except (OSError, ValueError) as error:
            raise TransferFormatError(f"{self.name} is damaged: {error}") from None

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        """Yields batches, one row group at a time: otherwise pyarrow keeps what it has read."""
        for group in range(self._file.metadata.num_row_groups):
            yield from self._file.iter_batches(GROUP, row_groups=[group], columns=columns)


def _vectors(batch: Any) -> list[Vectors | None]:
    column = batch.column("vector")
    values, offsets = column.values.to_numpy(), column.offsets.to_numpy()
    return [values[start:end] if end > start else None for start, end in pairwise(offsets)]


def load_pyarrow() -> tuple[Any, Any]:
    """Returns pyarrow and its Parquet module; raises if the extra is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("parquet", package="pyarrow") from None
    return pyarrow, pyarrow.parquet
