"""The vectors table in PostgreSQL, its HNSW index, and its rebuilding with another encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gcmem.errors import (
    EncoderError,
    EncoderMismatchError,
    IndexElsewhereError,
    StoreUnavailableError,
)
from gcmem.indexed_text import TEXT_VERSION, dense_text, rebuild_id
from gcmem.protocols import Encoder, Progress, Vectors
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.store.postgres.log import get_meta, set_meta
from gcmem.vectors import encode

if TYPE_CHECKING:
    from psycopg import Connection

REINDEX_BATCH = 256
VERSION = "text_version"
ELSEWHERE = "vectors_elsewhere"
HNSW = "gcmem_vectors_hnsw"
HNSW_MOST_DIMENSIONS = 4000
COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"


class PostgresVectors:
    """The vectors of the log's chunks, in the same database and the same transactions."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None before the first chunk."""
        with self._database.reading() as connection:
            return get_meta(connection, "encoder_id")

    @property
    def text_version(self) -> int:
        """How the embedded texts were made; an empty store gets the newest version."""
        with self._database.reading() as connection:
            if get_meta(connection, "encoder_id") is None:
                return TEXT_VERSION
            return int(get_meta(connection, VERSION) or 1)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another index has taken over, and these vectors were dropped."""
        with self._database.reading() as connection:
            return get_meta(connection, ELSEWHERE) is not None

    def hand_over(self) -> None:
        """Drops the vectors, because another index takes over; a rebuild takes it back."""
        if self.is_elsewhere:
            return
        with self._database.transaction() as connection:
            connection.execute("SELECT FROM gcmem_sequence FOR UPDATE")
            connection.execute("TRUNCATE gcmem_vectors, gcmem_vectors_next")
            connection.execute("DELETE FROM gcmem_meta WHERE key = 'encoder_id'")
            set_meta(connection, ELSEWHERE, "1")

    def insert(self, seqs: Sequence[int], vectors: Vectors, *, encoder_id: str) -> None:
        """Writes vectors; the first ones decide the encoder of the store."""
        with self._database.transaction() as connection:
            # Under the writers' lock, since another process may have re-embedded meanwhile.
            if get_meta(connection, ELSEWHERE) is not None:
                raise IndexElsewhereError(self._database.location)
            stored = get_meta(connection, "encoder_id")
            if stored is None:
                set_meta(connection, "encoder_id", encoder_id)
                set_meta(connection, VERSION, str(TEXT_VERSION))
            elif stored != encoder_id:
                raise EncoderMismatchError(
                    stored=stored, given=encoder_id, location=self._database.location
                )
            _check_width(connection, vectors, encoder_id)
            copying = "COPY gcmem_vectors FROM STDIN (FORMAT binary)"
            with connection.cursor().copy(copying) as copy:
                copy.write(_copy_format(seqs, vectors))

    def delete(self, seqs: Sequence[int]) -> None:
        """Deletes vectors, also those that a rebuild has made."""
        with self._database.transaction() as connection:
            for table in ("gcmem_vectors", "gcmem_vectors_next"):
                connection.execute(f"DELETE FROM {table} WHERE seq = ANY(%s)", (list(seqs),))

    def get(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT id, vector::real[] FROM gcmem_chunks JOIN gcmem_vectors USING (seq) "
                "WHERE id = ANY(%s)",
                (list(ids),),
            ).fetchall()
        return {row[0]: np.array(row[1], dtype=np.float32) for row in rows}

    def rebuild(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Re-embeds every chunk beside the old vectors and swaps them at the end.

        If it is stopped, the old vectors stay in use and the next call continues where it stopped.
        """
        made_by = rebuild_id(encoder)
        self._start_reindexing(made_by)
        needs_hnsw = encoder.dimensions <= HNSW_MOST_DIMENSIONS
        while True:
            with self._database.reading() as connection:
                pending = self._pending(connection, made_by)
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
            elif (swapped := self._swap(encoder.id, made_by)) is not None:
                return swapped

    def _start_reindexing(self, made_by: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("SELECT FROM gcmem_sequence FOR UPDATE")
            if get_meta(connection, "reindex_encoder_id") != made_by:
                connection.execute("TRUNCATE gcmem_vectors_next")
                connection.execute(f"DROP INDEX IF EXISTS {HNSW}_next")
                set_meta(connection, "reindex_encoder_id", made_by)

    def _pending(self, connection: Connection[Any], made_by: str) -> list[tuple[int, str]]:
        """Returns the next chunks to embed: those after the last embedded sequence number."""
        if get_meta(connection, "reindex_encoder_id") != made_by:
            raise StoreUnavailableError(
                f"another process re-embedded {self._database.location} meanwhile; "
                "open it again, and start over if it still needs a reindex"
            )
        rows = connection.execute(
            "SELECT seq, text, speaker FROM gcmem_chunks "
            "WHERE seq > (SELECT coalesce(max(seq), 0) FROM gcmem_vectors_next) "
            f"ORDER BY seq LIMIT {REINDEX_BATCH}"
        ).fetchall()
        return [(seq, dense_text(text, speaker=speaker)) for seq, text, speaker in rows]

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

    def _swap(self, encoder_id: str, made_by: str) -> int | None:
        """Puts the new vectors in place, unless a writer has just added a chunk without one.

        Waits for running searches, so that no search mixes the vectors of two encoders.
        """
        with self._database.transaction() as connection:
            connection.execute("SELECT FROM gcmem_sequence FOR UPDATE")
            if self._pending(connection, made_by):
                return None
            connection.execute("DROP TABLE gcmem_vectors")
            connection.execute("ALTER TABLE gcmem_vectors_next RENAME TO gcmem_vectors")
            connection.execute(f"ALTER INDEX IF EXISTS {HNSW}_next RENAME TO {HNSW}")
            connection.execute(
                "CREATE TABLE gcmem_vectors_next (seq bigint PRIMARY KEY, vector vector NOT NULL)"
            )
            connection.execute(
                "DELETE FROM gcmem_meta WHERE key IN ('reindex_encoder_id', %s)", (ELSEWHERE,)
            )
            set_meta(connection, "encoder_id", encoder_id)
            set_meta(connection, VERSION, str(TEXT_VERSION))
            row = connection.execute("SELECT count(*) FROM gcmem_vectors").fetchone()
            return int(row[0]) if row else 0


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


def as_literal(vector: Vectors) -> str:
    """Returns a vector in pgvector's text format, without loss."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _copy_format(seqs: Sequence[int], vectors: Vectors) -> bytes:
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
    rows["seq"] = seqs
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
