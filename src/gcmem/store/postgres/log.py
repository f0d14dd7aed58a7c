"""The log in PostgreSQL: chunks in one table, their vectors in another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gcmem.errors import EncoderError, EncoderMismatchError, StoreUnavailableError
from gcmem.protocols import Encoder, Progress, Vectors
from gcmem.storable import check_chunks, check_metadata
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.types import Chunk, ChunkFilter, Scalar, Scope
from gcmem.vectors import checked, encode

if TYPE_CHECKING:
    from psycopg import Connection

COLUMNS = (
    "seq, id, user_id, agent_id, run_id, at, recorded_at, speaker, session, text, metadata, trust"
)
PAGE = 1000
REINDEX_BATCH = 256
HNSW = "gcmem_vectors_hnsw"
HNSW_MOST_DIMENSIONS = 4000
COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"


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
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None before the first chunk."""
        with self._database.reading() as connection:
            return get_meta(connection, "encoder_id")

    def append(
        self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str
    ) -> tuple[Chunk, ...]:
        """Stores all chunks or none; when it returns, they are on the server's disk."""
        if not chunks:
            return ()
        check_chunks(chunks)
        vectors = checked(vectors, count=len(chunks), encoder_id=encoder_id)
        rows = [_row(chunk) for chunk in chunks]
        with self._database.transaction() as connection:
            last_seq = connection.execute(
                "UPDATE gcmem_sequence SET last_seq = last_seq + %s RETURNING last_seq",
                (len(rows),),
            ).fetchone()[0]
            first_seq = last_seq - len(rows) + 1
            self._claim(connection, encoder_id)
            _check_width(connection, vectors, encoder_id)
            cursor = connection.cursor()
            with cursor.copy(f"COPY gcmem_chunks ({COLUMNS}) FROM STDIN") as copy:
                for seq, row in enumerate(rows, first_seq):
                    copy.write_row((seq, *row))
            with cursor.copy("COPY gcmem_vectors FROM STDIN (FORMAT binary)") as copy:
                copy.write(_copy_format(vectors, first_seq))
        return tuple(replace(chunk, seq=seq) for seq, chunk in enumerate(chunks, first_seq))

    def _claim(self, connection: Connection[Any], encoder_id: str) -> None:
        """Raises if the store has another encoder; a store without one gets this one.

        Called under the writers' lock, since another process may have re-embedded meanwhile.
        """
        stored = get_meta(connection, "encoder_id")
        if stored is None:
            _set_meta(connection, "encoder_id", encoder_id)
        elif stored != encoder_id:
            raise EncoderMismatchError(stored=stored, given=encoder_id, location=self.location)

    def get(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """Returns the chunks that exist, by id."""
        if not ids:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM gcmem_chunks WHERE id = ANY(%s)", (list(ids),)
            ).fetchall()
        return {row[1]: _chunk(row) for row in rows}

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT id, vector::real[] FROM gcmem_chunks JOIN gcmem_vectors USING (seq) "
                "WHERE id = ANY(%s)",
                (list(ids),),
            ).fetchall()
        return {row[0]: np.array(row[1], dtype=np.float32) for row in rows}

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
        last: tuple[Any, ...] = ()
        left = limit
        while left is None or left > 0:
            page_conditions = list(conditions)
            if last:
                marks = ", ".join(["%s"] * len(key))
                page_conditions.append(f"({', '.join(key)}) {beyond} ({marks})")
            size = PAGE if left is None else min(PAGE, left)
            with self._database.reading() as connection:
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM gcmem_chunks {where_clause(page_conditions)} "
                    f"ORDER BY {order} LIMIT {size}",
                    [*values, *last],
                ).fetchall()
            for row in rows:
                yield _chunk(row)
            if len(rows) < size:
                return
            last = (rows[-1][5], rows[-1][0]) if by_time else (rows[-1][0],)
            left = None if left is None else left - size

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
        return None if row is None else _chunk(row)

    def delete(self, ids: Sequence[str]) -> int:
        """Erases text, metadata, vector and verdicts; the server's vacuum frees the space."""
        if not ids:
            return 0
        with self._database.transaction() as connection:
            erased = connection.execute(
                "DELETE FROM gcmem_chunks WHERE id = ANY(%s) RETURNING seq, id", (list(ids),)
            ).fetchall()
            seqs, gone = [row[0] for row in erased], [row[1] for row in erased]
            for table in ("gcmem_vectors", "gcmem_vectors_next"):
                connection.execute(f"DELETE FROM {table} WHERE seq = ANY(%s)", (seqs,))
            for table in ("gcmem_verdicts", "gcmem_edges"):
                connection.execute(
                    f"DELETE FROM {table} WHERE older = ANY(%s) OR newer = ANY(%s)", (gone, gone)
                )
        return len(erased)

    def reindex(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Re-embeds every chunk beside the old vectors and swaps them at the end.

        If it is stopped, the old vectors stay in use and the next call continues where it stopped.
        """
        self._start_reindexing(encoder.id)
        needs_hnsw = encoder.dimensions <= HNSW_MOST_DIMENSIONS
        while True:
            with self._database.reading() as connection:
                pending = self._pending(connection, encoder.id)
                needs_hnsw = needs_hnsw and (bool(pending) or hnsw_is_built(connection))
                done, total = connection.execute(
                    "SELECT (SELECT count(*) FROM gcmem_vectors_next), "
                    "(SELECT count(*) FROM gcmem_chunks)"
                ).fetchone()
            if pending:
                if progress is not None:
                    progress(done, total)
                self._embed(pending, encoder)
            elif needs_hnsw:
                self._build_next(encoder.dimensions)
                needs_hnsw = False
            elif (swapped := self._swap(encoder.id)) is not None:
                return swapped

    def _start_reindexing(self, encoder_id: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("SELECT FROM gcmem_sequence FOR UPDATE")
            if get_meta(connection, "reindex_encoder_id") != encoder_id:
                connection.execute("TRUNCATE gcmem_vectors_next")
                connection.execute(f"DROP INDEX IF EXISTS {HNSW}_next")
                _set_meta(connection, "reindex_encoder_id", encoder_id)

    def _pending(self, connection: Connection[Any], encoder_id: str) -> list[tuple[int, str]]:
        """Returns the next chunks to embed: those after the last embedded sequence number."""
        if get_meta(connection, "reindex_encoder_id") != encoder_id:
            raise StoreUnavailableError(
                f"another process re-embedded {self.location} meanwhile; "
                "open it again, and start over if it still needs a reindex"
            )
        rows: list[tuple[int, str]] = connection.execute(
            "SELECT seq, text FROM gcmem_chunks "
            "WHERE seq > (SELECT coalesce(max(seq), 0) FROM gcmem_vectors_next) "
            f"ORDER BY seq LIMIT {REINDEX_BATCH}"
        ).fetchall()
        return rows

    def _embed(self, pending: list[tuple[int, str]], encoder: Encoder) -> None:
        vectors = encode(encoder, [text for _, text in pending])
        with self._database.transaction() as connection:
            connection.execute(
                # Locks the chunks, so that one erased meanwhile leaves no vector behind. Another
                # process with the same encoder makes the same vectors, so conflicts are ignored.
                "INSERT INTO gcmem_vectors_next SELECT chunks.seq, made.vector::vector "
                "FROM unnest(%s::bigint[], %s::text[]) AS made (seq, vector) "
                "JOIN gcmem_chunks AS chunks ON chunks.seq = made.seq FOR KEY SHARE OF chunks "
                "ON CONFLICT DO NOTHING",
                ([seq for seq, _ in pending], [as_literal(vector) for vector in vectors]),
            )

    def _build_next(self, dimensions: int) -> None:
        with self._database.unhurried() as connection:
            connection.execute(hnsw_definition(f"{HNSW}_next", "gcmem_vectors_next", dimensions))

    def _swap(self, encoder_id: str) -> int | None:
        """Puts the new vectors in place, unless a writer has just added a chunk without one.

        Waits for running searches, so that no search mixes the vectors of two encoders.
        """
        with self._database.transaction() as connection:
            connection.execute("SELECT FROM gcmem_sequence FOR UPDATE")
            if self._pending(connection, encoder_id):
                return None
            connection.execute("DROP TABLE gcmem_vectors")
            connection.execute("ALTER TABLE gcmem_vectors_next RENAME TO gcmem_vectors")
            connection.execute(f"ALTER INDEX IF EXISTS {HNSW}_next RENAME TO {HNSW}")
            connection.execute(
                "CREATE TABLE gcmem_vectors_next (seq bigint PRIMARY KEY, vector vector NOT NULL)"
            )
            connection.execute("DELETE FROM gcmem_meta WHERE key = 'reindex_encoder_id'")
            _set_meta(connection, "encoder_id", encoder_id)
            row = connection.execute("SELECT count(*) FROM gcmem_vectors").fetchone()
            return int(row[0]) if row else 0

    def close(self) -> None:
        """Closes the connections, which index and verdicts share."""
        self._database.close()


def hnsw_definition(name: str, table: str, dimensions: int) -> str:
    """Returns the SQL of an HNSW index in half precision, which halves its size.

    Hits are scored again in full precision.
    """
    return (
        f"CREATE INDEX IF NOT EXISTS {name} ON {table} "
        f"USING hnsw ((vector::halfvec({dimensions})) halfvec_ip_ops)"
    )


def hnsw_is_built(connection: Connection[Any]) -> bool:
    """Returns whether there is an HNSW index that searches can use."""
    row = connection.execute(
        "SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid", (HNSW,)
    ).fetchone()
    return row is not None


def get_meta(connection: Connection[Any], key: str) -> str | None:
    """Returns one of the store's own settings."""
    row = connection.execute("SELECT value FROM gcmem_meta WHERE key = %s", (key,)).fetchone()
    return None if row is None else str(row[0])


def _set_meta(connection: Connection[Any], key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO gcmem_meta VALUES (%s, %s) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def as_literal(vector: Vectors) -> str:
    """Returns a vector in pgvector's text format, without loss."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _copy_format(vectors: Vectors, first_seq: int) -> bytes:
    """Returns the rows of the vector table in the binary format of COPY, all at once."""
    dimensions = vectors.shape[1]
    rows = np.zeros(
        len(vectors),
        dtype=[
            ("fields", ">i2"),
            ("seq_bytes", ">i4"),
            ("seq", ">i8"),
            ("vector_bytes", ">i4"),
            ("dimensions", ">i2"),
            ("unused", ">i2"),
            ("vector", ">f4", (dimensions,)),
        ],
    )
    rows["fields"], rows["seq_bytes"], rows["vector_bytes"] = 2, 8, 4 + 4 * dimensions
    rows["seq"] = np.arange(first_seq, first_seq + len(vectors))
    rows["dimensions"], rows["vector"] = dimensions, vectors
    return COPY_HEADER + rows.tobytes() + COPY_TRAILER


def _check_width(connection: Connection[Any], vectors: Vectors, encoder_id: str) -> None:
    """Raises if the vectors differ in length from the stored ones: that would break searches."""
    row = connection.execute("SELECT vector_dims(vector) FROM gcmem_vectors LIMIT 1").fetchone()
    if row is not None and row[0] != vectors.shape[1]:
        raise EncoderError(
            encoder_id,
            f"returned {vectors.shape[1]} dimensions, but the stored vectors have {row[0]} "
            "(gcmem doctor shows whether it needs a reindex)",
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


def _chunk(row: tuple[Any, ...]) -> Chunk:
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
