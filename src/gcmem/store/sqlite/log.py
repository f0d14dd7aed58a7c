"""The embedded log: one SQLite file, WAL, synchronous=FULL."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gcmem.errors import EncoderError, EncoderMismatchError, InvalidInputError, StoreError
from gcmem.protocols import Encoder, Progress, Vectors
from gcmem.storable import check_chunks, check_metadata
from gcmem.store.sqlite.file import (
    IN_MEMORY,
    StoreFile,
    get_meta,
    set_meta,
    transaction,
    translated_errors,
)
from gcmem.store.sqlite_backup import back_up
from gcmem.store.sqlite_erasing import Eraser
from gcmem.store.sqlite_reindex import rebuild
from gcmem.types import Chunk, ChunkFilter, FrozenDict, Scalar, Scope
from gcmem.vectors import checked

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = (
    "seq, id, user_id, agent_id, run_id, at, recorded_at, speaker, session, text, metadata, trust"
)
NO_METADATA = FrozenDict()
PAGE = 1000


def to_micros(at: datetime) -> int:
    """Returns microseconds since 1970, exactly."""
    return (at - EPOCH) // timedelta(microseconds=1)


class LogState(NamedTuple):
    """What an index compares to see whether the log has changed."""

    last_seq: int
    last_tombstone: int
    generation: int


class VectorRow(NamedTuple):
    """One row as the index loads it."""

    seq: int
    id: str
    scope: tuple[str | None, str | None, str | None]
    at: int
    recorded_at: int
    vector: bytes


class SQLiteLog:
    """An append-only log in one file; several threads and processes may use it at once."""

    def __init__(self, path: Path | str) -> None:
        self.location = IN_MEMORY if str(path) == IN_MEMORY else str(Path(path).expanduser())
        self.lock = threading.RLock()
        self.file = StoreFile(self.location)
        self._eraser = Eraser(self.file)
        self._when_erased: list[Callable[[], None]] = []

    def when_erased(self, call: Callable[[], None]) -> None:
        """Registers a function to call after chunks are erased, so that caches drop them."""
        self._when_erased.append(call)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self.lock, translated_errors(self.location):
            self.file.check_in_place()
            yield self.file.connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            with transaction(connection):
                yield connection
            # A write into a file that was replaced or deleted must not be acknowledged.
            self.file.check_in_place(wal=True)

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None before the first chunk."""
        with self._reading() as connection:
            return get_meta(connection, "encoder_id")

    def append(
        self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str
    ) -> tuple[Chunk, ...]:
        """Stores all chunks or none; when it returns, they are on disk."""
        check_chunks(chunks)
        vectors = checked(vectors, count=len(chunks), encoder_id=encoder_id)
        rows = [_row(chunk) for chunk in chunks]
        blobs = [vector.tobytes() for vector in vectors]
        with self._writing() as connection:
            self._claim(connection, encoder_id)
            _check_width(connection, vectors, encoder_id)
            last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
            first_seq = (last.fetchone() or (0,))[0] + 1
            try:
                connection.executemany(
                    f"INSERT INTO chunks ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                    [(seq, *row) for seq, row in enumerate(rows, first_seq)],
                )
            except sqlite3.IntegrityError:
                raise InvalidInputError("a chunk with one of these ids exists already") from None
            connection.executemany(
                "INSERT INTO vectors VALUES (?,?)",
                list(zip(range(first_seq, first_seq + len(rows)), blobs, strict=True)),
            )
        return tuple(replace(chunk, seq=seq) for seq, chunk in enumerate(chunks, first_seq))

    def _claim(self, connection: sqlite3.Connection, encoder_id: str) -> None:
        """Raises if the store has another encoder; a store without one gets this one.

        Called inside the write, since another process may have re-embedded meanwhile.
        """
        stored = get_meta(connection, "encoder_id")
        if stored is None:
            set_meta(connection, "encoder_id", encoder_id)
        elif stored != encoder_id:
            raise EncoderMismatchError(stored=stored, given=encoder_id, location=self.location)

    def get(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """Returns the chunks that exist, by id."""
        found: dict[str, Chunk] = {}
        for start in range(0, len(ids), PAGE):
            batch = list(ids[start : start + PAGE])
            marks = ",".join("?" * len(batch))
            with self._reading() as connection:
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM chunks WHERE id IN ({marks})", batch
                ).fetchall()
            found.update((row[1], _chunk(row)) for row in rows)
        return found

    def scan(
        self,
        where: ChunkFilter,
        *,
        by_time: bool = False,
        newest_first: bool = False,
        after_seq: int = 0,
        limit: int | None = None,
    ) -> Iterator[Chunk]:
        """Yields matching chunks page by page, so that writers never wait for a slow reader."""
        conditions, values = _conditions(where)
        if after_seq:
            conditions.append("seq > ?")
            values.append(after_seq)
        key = "(at, seq)" if by_time else "(seq)"
        order = "at {0}, seq {0}" if by_time else "seq {0}"
        order = order.format("DESC" if newest_first else "ASC")
        beyond = "<" if newest_first else ">"
        last: tuple[int, ...] | None = None
        left = limit
        while left is None or left > 0:
            page_conditions, page_values = list(conditions), list(values)
            if last is not None:
                page_conditions.append(f"{key} {beyond} ({','.join('?' * len(last))})")
                page_values.extend(last)
            size = PAGE if left is None else min(PAGE, left)
            with self._reading() as connection:
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM chunks {_where(page_conditions)} "
                    f"ORDER BY {order} LIMIT {size}",
                    page_values,
                ).fetchall()
            for row in rows:
                yield _chunk(row)
            if len(rows) < size:
                return
            last = (rows[-1][5], rows[-1][0]) if by_time else (rows[-1][0],)
            left = None if left is None else left - size

    def count(self, where: ChunkFilter) -> int:
        """Returns the number of matching chunks."""
        conditions, values = _conditions(where)
        with self._reading() as connection:
            found: int = connection.execute(
                f"SELECT count(*) FROM chunks {_where(conditions)}", values
            ).fetchone()[0]
        return found

    def set_metadata(self, chunk_id: str, metadata: Mapping[str, Any]) -> Chunk | None:
        """Replaces a chunk's metadata; when it returns, the change is on disk."""
        metadata = check_metadata(metadata)
        with self._writing() as connection:
            row = connection.execute(
                f"UPDATE chunks SET metadata = ? WHERE id = ? RETURNING {COLUMNS}",
                (json.dumps(metadata, ensure_ascii=False), chunk_id),
            ).fetchone()
        return None if row is None else _chunk(row)

    def delete(self, ids: Sequence[str]) -> int:
        """Erases all that is stored about the chunks except their sequence numbers, as tombstones.

        `erasing` reports copies that are still in the file.
        """
        erased = 0
        with self._writing() as connection:
            vector_tables = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE name IN ('vectors', 'vectors_next')"
                )
            ]
            for chunk_id in dict.fromkeys(ids):
                row = connection.execute(
                    "DELETE FROM chunks WHERE id = ? RETURNING seq", (chunk_id,)
                ).fetchone()
                if row is not None:
                    for table in vector_tables:
                        connection.execute(f"DELETE FROM {table} WHERE seq = ?", row)
                    connection.execute("INSERT INTO tombstones (seq) VALUES (?)", row)
                    for table in ("verdicts", "edges"):
                        connection.execute(f"DELETE FROM {table} WHERE older = ?", (chunk_id,))
                        connection.execute(f"DELETE FROM {table} WHERE newer = ?", (chunk_id,))
                    erased += 1
        if erased:
            for call in self._when_erased:
                call()
            self._eraser.finish()
        return erased

    def erasing(self) -> str | None:
        """Describes what is still to be erased, and when that happens; None if nothing is."""
        with self._reading() as connection:
            return self._eraser.left(connection)

    def backup(
        self, path: Path, *, overwrite: bool = False, progress: Progress | None = None
    ) -> int:
        """Copies the store into a file while it is in use; returns the number of chunks."""
        return back_up(self.file, path, lock=self.lock, overwrite=overwrite, progress=progress)

    def reindex(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Re-embeds every chunk beside the old vectors and swaps them at the end.

        If it is killed, the old vectors stay in use and the next call continues where it stopped.
        """
        return rebuild(self._writing, encoder=encoder, location=self.location, progress=progress)

    def state(self) -> LogState:
        """Returns the state by which an index notices new, erased and re-embedded chunks."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT (SELECT max(seq) FROM chunks), (SELECT max(n) FROM tombstones), "
                "(SELECT value FROM meta WHERE key = 'generation')"
            ).fetchone()
        return LogState(*(int(mark or 0) for mark in row))

    def vector_rows(self, scope: Scope, *, after_seq: int = 0) -> list[VectorRow]:
        """Returns the index rows of the chunks in `scope` after `after_seq`."""
        conditions, values = _conditions(ChunkFilter(scope=scope))
        if after_seq:
            conditions.append("seq > ?")
            values.append(after_seq)
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT seq, id, user_id, agent_id, run_id, at, recorded_at, vector "
                f"FROM chunks JOIN vectors USING (seq) {_where(conditions)} ORDER BY seq",
                values,
            ).fetchall()
        return [VectorRow(r[0], r[1], (r[2], r[3], r[4]), r[5], r[6], r[7]) for r in rows]

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""
        found: dict[str, Vectors] = {}
        for start in range(0, len(ids), PAGE):
            batch = list(ids[start : start + PAGE])
            with self._reading() as connection:
                rows = connection.execute(
                    "SELECT id, vector FROM chunks JOIN vectors USING (seq) "
                    f"WHERE id IN ({','.join('?' * len(batch))})",
                    batch,
                ).fetchall()
            found.update((row[0], stored_vector(row[1])) for row in rows)
        return found

    def erased_since(self, tombstone: int) -> list[int]:
        """Returns the sequence numbers erased after the given tombstone."""
        with self._reading() as connection:
            rows = connection.execute("SELECT seq FROM tombstones WHERE n > ?", (tombstone,))
            return [row[0] for row in rows]

    def seqs(self, where: ChunkFilter) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Returns the sequence numbers of the matching chunks, sorted."""
        conditions, values = _conditions(where)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT seq FROM chunks {_where(conditions)} ORDER BY seq", values
            ).fetchall()
        return np.array([row[0] for row in rows], dtype=np.int64)

    def check(self) -> str | None:
        """Checks the whole file for damage; returns what is wrong, or None."""
        try:
            with self._reading() as connection:
                found: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except StoreError as error:
            return str(error)
        return None if found == "ok" else found

    def close(self) -> None:
        """Closes the file."""
        self._eraser.close()
        with self.lock:
            self.file.connection.close()


def stored_vector(blob: bytes) -> Vectors:
    """Returns a stored vector; if it is cut off, only its complete numbers."""
    itemsize = np.dtype(np.float32).itemsize
    return np.frombuffer(blob, dtype=np.float32, count=len(blob) // itemsize)


def _check_width(connection: sqlite3.Connection, vectors: Vectors, encoder_id: str) -> None:
    """Raises if the vectors differ in length from the stored ones: that would break searches."""
    row = connection.execute("SELECT length(vector) FROM vectors LIMIT 1").fetchone()
    if row is not None and len(vectors) and row[0] != vectors[0].nbytes:
        raise EncoderError(
            encoder_id,
            f"returned {vectors.shape[1]} dimensions, but the stored vectors have "
            f"{row[0] // vectors.itemsize} (gcmem doctor shows whether it needs a reindex)",
        )


def _row(chunk: Chunk) -> tuple[Any, ...]:
    assert chunk.at is not None
    assert chunk.recorded_at is not None
    scope = chunk.scope
    return (
        chunk.id,
        scope.user_id,
        scope.agent_id,
        scope.run_id,
        to_micros(chunk.at),
        to_micros(chunk.recorded_at),
        chunk.speaker,
        chunk.session,
        chunk.text,
        json.dumps(chunk.metadata, ensure_ascii=False),
        chunk.trust,
    )


def _chunk(row: tuple[Any, ...]) -> Chunk:
    seq, chunk_id, user_id, agent_id, run_id, at, recorded_at, *rest = row
    speaker, session, text, meta, trust = rest
    return Chunk(
        id=chunk_id,
        text=text,
        at=EPOCH + timedelta(microseconds=at),
        recorded_at=EPOCH + timedelta(microseconds=recorded_at),
        seq=seq,
        scope=make_scope(user_id, agent_id, run_id),
        speaker=speaker,
        session=session,
        metadata=NO_METADATA if meta == "{}" else json.loads(meta),
        trust=trust,
    )


@lru_cache(maxsize=4096)
def make_scope(user_id: str | None, agent_id: str | None, run_id: str | None) -> Scope:
    """Returns the scope of stored ids; cached, since many rows share the same few scopes."""
    return Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)


def _conditions(where: ChunkFilter) -> tuple[list[str], list[Any]]:
    """Returns the filter as SQL conditions with their values."""
    conditions: list[str] = []
    values: list[Any] = []
    for column in ("user_id", "agent_id", "run_id"):
        value = getattr(where.scope, column)
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    for condition, moment in (
        ("at > ?", where.after),
        ("at <= ?", where.as_of),
        ("recorded_at <= ?", where.known_at),
    ):
        if moment is not None:
            conditions.append(condition)
            values.append(to_micros(moment))
    for key, wanted in where.metadata:
        members = wanted if isinstance(wanted, tuple) else (wanted,)
        conditions.append(f"({' OR '.join(_metadata_test(key, m, values) for m in members)})")
    return conditions, values


def _metadata_test(key: str, member: Scalar, values: list[Any]) -> str:
    """Returns an SQL test that also compares types: in SQLite's JSON, true equals 1."""
    path = f'$."{key}"'
    if member is None or isinstance(member, bool):
        values.extend([path, {None: "null", True: "true", False: "false"}[member]])
        return "json_type(metadata, ?) IS ?"
    types = "('text')" if isinstance(member, str) else "('integer', 'real')"
    values.extend([path, path, member])
    return f"(json_type(metadata, ?) IN {types} AND json_extract(metadata, ?) = ?)"


def _where(conditions: list[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""
