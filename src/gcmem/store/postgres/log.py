"""The log in PostgreSQL: one table, and a counter that keeps the order."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gcmem.protocols import LogState
from gcmem.storable import check_chunks, check_metadata
from gcmem.store.paging import paged
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.types import Chunk, ChunkFilter, Scalar, Scope

if TYPE_CHECKING:
    from psycopg import Connection

COLUMNS = (
    "seq, id, user_id, agent_id, run_id, at, recorded_at, speaker, session, text, metadata, trust"
)


class PostgresLog:
    """An append-only log; any number of processes on any number of machines may share it.

    Sequence numbers come from one row, which a writer locks until its commit, so they become
    visible in order: a reader that pages by `after_seq` never misses a lower number that commits
    later. A sequence object would be faster, but hands out numbers long before they are visible.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.location = database.location

    @property
    def id(self) -> str:
        """A name that no other log has; a backup keeps it."""
        with self._database.reading() as connection:
            return str(get_meta(connection, "log_id"))

    def transaction(self) -> AbstractContextManager[object]:
        """Joins the writes inside into one transaction."""
        return self._database.transaction()

    def append(self, chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        """Stores all chunks or none; when it returns, they are on the server's disk."""
        if not chunks:
            return ()
        check_chunks(chunks)
        rows = [_row(chunk) for chunk in chunks]
        with self._database.transaction() as connection:
            last_seq = connection.execute(
                "UPDATE gcmem_sequence SET last_seq = last_seq + %s RETURNING last_seq",
                (len(rows),),
            ).fetchone()[0]
            first_seq = last_seq - len(rows) + 1
            copying = f"COPY gcmem_chunks ({COLUMNS}) FROM STDIN"
            with connection.cursor().copy(copying) as copy:
                for seq, row in enumerate(rows, first_seq):
                    copy.write_row((seq, *row))
        return tuple(replace(chunk, seq=seq) for seq, chunk in enumerate(chunks, first_seq))

    def get(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """Returns the chunks that exist, by id."""
        if not ids:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM gcmem_chunks WHERE id = ANY(%s)", (list(ids),)
            ).fetchall()
        return {row[1]: chunk_of(row) for row in rows}

    def scan(
        self,
        where: ChunkFilter,
        *,
        by_time: bool = False,
        newest_first: bool = False,
        after_seq: int = 0,
        limit: int | None = None,
    ) -> Iterator[Chunk]:
        """Yields matching chunks page by page; no connection is held between two pages."""
        conditions, values = conditions_of(where)
        if after_seq:
            conditions.append("seq > %s")
            values.append(after_seq)
        key = ("at", "seq") if by_time else ("seq",)
        direction, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        order = ", ".join(f"{column} {direction}" for column in key)

        def read(last: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
            marks = ", ".join(["%s"] * len(key))
            after = [f"({', '.join(key)}) {beyond} ({marks})"] if last else []
            with self._database.reading() as connection:
                rows: list[tuple[Any, ...]] = connection.execute(
                    f"SELECT {COLUMNS} FROM gcmem_chunks {where_clause([*conditions, *after])} "
                    f"ORDER BY {order} LIMIT {size}",
                    [*values, *last],
                ).fetchall()
            return rows

        yield from map(chunk_of, paged(read, by_time=by_time, limit=limit))

    def count(self, where: ChunkFilter) -> int:
        """Returns the number of matching chunks."""
        conditions, values = conditions_of(where)
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM gcmem_chunks {where_clause(conditions)}", values
            ).fetchone()
        return int(row[0]) if row else 0

    def set_metadata(self, chunk_id: str, metadata: Mapping[str, Any]) -> Chunk | None:
        """Replaces a chunk's metadata; when it returns, the change is on the server's disk."""
        metadata = check_metadata(metadata)
        with self._database.reading() as connection:
            row = connection.execute(
                f"UPDATE gcmem_chunks SET metadata = %s WHERE id = %s RETURNING {COLUMNS}",
                (json.dumps(metadata, ensure_ascii=False), chunk_id),
            ).fetchone()
        return None if row is None else chunk_of(row)

    def delete(self, ids: Sequence[str]) -> list[int]:
        """Erases text and metadata; the server's vacuum frees the space."""
        if not ids:
            return []
        with self._database.transaction() as connection:
            # The writers' lock, so that erasures become visible in the order of their numbers.
            connection.execute("SELECT FROM gcmem_sequence FOR UPDATE")
            rows = connection.execute(
                "WITH erased AS (DELETE FROM gcmem_chunks WHERE id = ANY(%s) RETURNING seq) "
                "INSERT INTO gcmem_tombstones (seq) SELECT seq FROM erased RETURNING seq",
                (list(ids),),
            ).fetchall()
        return [row[0] for row in rows]

    def seqs(self, where: ChunkFilter) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Returns the sequence numbers of the matching chunks, sorted."""
        conditions, values = conditions_of(where)
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT seq FROM gcmem_chunks {where_clause(conditions)} ORDER BY seq", values
            ).fetchall()
        return np.array([row[0] for row in rows], dtype=np.int64)

    def state(self) -> LogState:
        """Returns the last sequence number and the number of the last erasure."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT last_seq, (SELECT coalesce(max(n), 0) FROM gcmem_tombstones) "
                "FROM gcmem_sequence"
            ).fetchone()
        return LogState(*row)

    def erased_since(self, erasure: int) -> list[int]:
        """Returns the sequence numbers erased after the given erasure."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT seq FROM gcmem_tombstones WHERE n > %s", (erasure,))
            return [row[0] for row in rows]

    def close(self) -> None:
        """Closes the connections, which all parts share."""
        self._database.close()


def get_meta(connection: Connection[Any], key: str) -> str | None:
    """Returns one of the store's own settings."""
    row = connection.execute("SELECT value FROM gcmem_meta WHERE key = %s", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(connection: Connection[Any], key: str, value: str) -> None:
    """Saves one of the store's own settings."""
    connection.execute(
        "INSERT INTO gcmem_meta VALUES (%s, %s) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def _row(chunk: Chunk) -> tuple[Any, ...]:
    scope = chunk.scope
    return (
        chunk.id,
        scope.user_id,
        scope.agent_id,
        scope.run_id,
        chunk.at,
        chunk.recorded_at,
        chunk.speaker,
        chunk.session,
        chunk.text,
        json.dumps(chunk.metadata, ensure_ascii=False),
        chunk.trust,
    )


def chunk_of(row: tuple[Any, ...]) -> Chunk:
    """Returns the chunk of a row."""
    seq, chunk_id, user_id, agent_id, run_id, at, recorded_at, speaker, session, text = row[:10]
    meta, trust = row[10:]
    return Chunk(
        id=chunk_id,
        text=text,
        at=at,
        recorded_at=recorded_at,
        seq=seq,
        scope=Scope(user_id=user_id, agent_id=agent_id, run_id=run_id),
        speaker=speaker,
        session=session,
        metadata=json.loads(meta),
        trust=trust,
    )


def conditions_of(where: ChunkFilter) -> tuple[list[str], list[Any]]:
    """Returns the filter as SQL conditions with their values."""
    conditions: list[str] = []
    values: list[Any] = []
    for condition, value in (
        ("user_id = %s", where.scope.user_id),
        ("agent_id = %s", where.scope.agent_id),
        ("run_id = %s", where.scope.run_id),
        ("at > %s", where.after),
        ("at <= %s", where.as_of),
        ("recorded_at <= %s", where.known_at),
        ("seq < %s", where.before_seq),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    for key, wanted in where.metadata:
        members = wanted if isinstance(wanted, tuple) else (wanted,)
        tests = [_metadata_test(key, member, values) for member in members]
        conditions.append(f"({' OR '.join(tests)})")
    return conditions, values


def _metadata_test(key: str, member: Scalar, values: list[Any]) -> str:
    """Returns an SQL test by jsonb containment: 1 equals 1.0, but not true."""
    if isinstance(member, float) and not math.isfinite(member):
        return "false"  # JSON has no such number, so no chunk can match
    values.append(json.dumps({key: member}))
    return "facets @> %s::jsonb"


def where_clause(conditions: Sequence[str]) -> str:
    """Returns the conditions as a WHERE clause, or nothing."""
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""
