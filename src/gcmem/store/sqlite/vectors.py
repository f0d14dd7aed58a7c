"""The vectors table: written with the chunks, replaced when the encoder changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np

from gcmem.errors import (
    EncoderError,
    EncoderMismatchError,
    IndexElsewhereError,
    StoreUnavailableError,
)
from gcmem.indexed_text import TEXT_VERSION, dense_text, rebuild_id
from gcmem.protocols import Encoder, Progress, Vectors
from gcmem.store.paging import PAGE
from gcmem.store.sqlite.file import get_meta, next_generation, set_meta
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.vectors import encode

BATCH = 256
ENCODER = "encoder_id"
NEXT_ENCODER = "reindex_encoder_id"
VERSION = "text_version"
ELSEWHERE = "vectors_elsewhere"


class SQLiteVectors:
    """The vectors of the log's chunks, in the same file and the same transactions."""

    def __init__(self, log: SQLiteLog) -> None:
        self._log = log

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the vectors; None before the first chunk."""
        with self._log.reading() as connection:
            return get_meta(connection, ENCODER)

    @property
    def text_version(self) -> int:
        """How the embedded texts were made; an empty store gets the newest version."""
        with self._log.reading() as connection:
            if get_meta(connection, ENCODER) is None:
                return TEXT_VERSION
            return int(get_meta(connection, VERSION) or 1)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another index has taken over, and these vectors were dropped."""
        with self._log.reading() as connection:
            return get_meta(connection, ELSEWHERE) is not None

    def hand_over(self) -> None:
        """Drops the vectors, because another index takes over; a rebuild takes it back."""
        if self.is_elsewhere:
            return
        with self._log.writing() as connection:
            for table in ("vectors", "vectors_next"):
                connection.execute(f"DELETE FROM {table}")
            connection.execute("DELETE FROM meta WHERE key = ?", (ENCODER,))
            set_meta(connection, ELSEWHERE, "1")

    def insert(self, seqs: Sequence[int], vectors: Vectors, *, encoder_id: str) -> None:
        """Writes vectors; the first ones decide the encoder of the store."""
        with self._log.writing() as connection:
            # Inside the write, since another process may have re-embedded meanwhile.
            if get_meta(connection, ELSEWHERE) is not None:
                raise IndexElsewhereError(self._log.location)
            stored = get_meta(connection, ENCODER)
            if stored is None:
                set_meta(connection, ENCODER, encoder_id)
                set_meta(connection, VERSION, str(TEXT_VERSION))
            elif stored != encoder_id:
                raise EncoderMismatchError(
                    stored=stored, given=encoder_id, location=self._log.location
                )
            _check_width(connection, vectors, encoder_id)
            connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?,?)",
                [(seq, v.tobytes()) for seq, v in zip(seqs, vectors, strict=True)],
            )

    def delete(self, seqs: Sequence[int]) -> None:
        """Deletes vectors, also those that a rebuild has made."""
        with self._log.writing() as connection:
            for table in ("vectors", "vectors_next"):
                connection.executemany(
                    f"DELETE FROM {table} WHERE seq = ?", [(seq,) for seq in seqs]
                )

    def get(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""
        found: dict[str, Vectors] = {}
        for start in range(0, len(ids), PAGE):
            batch = list(ids[start : start + PAGE])
            with self._log.reading() as connection:
                rows = connection.execute(
                    "SELECT id, vector FROM chunks JOIN vectors USING (seq) "
                    f"WHERE id IN ({','.join('?' * len(batch))})",
                    batch,
                ).fetchall()
            found.update((row[0], stored_vector(row[1])) for row in rows)
        return found

    def rebuild(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Embeds every chunk beside the old vectors, swaps them at the end, returns their number.

        If it is killed, the old vectors stay in use and the next call continues where it stopped.
        """
        with self._log.writing() as connection:
            made_by = rebuild_id(encoder)
            if get_meta(connection, NEXT_ENCODER) != made_by:
                connection.execute("DELETE FROM vectors_next")
                set_meta(connection, NEXT_ENCODER, made_by)
        while True:
            with self._log.writing() as connection:
                self._check_still_ours(connection, made_by)
                pending = connection.execute(
                    "SELECT seq, text, speaker FROM chunks "
                    "WHERE seq NOT IN (SELECT seq FROM vectors_next) "
                    f"ORDER BY seq LIMIT {BATCH}"
                ).fetchall()
                if not pending:
                    return _swap(connection, encoder.id)
                done = connection.execute("SELECT count(*) FROM vectors_next").fetchone()[0]
                total = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
            if progress is not None:
                progress(done, total)
            texts = [dense_text(text, speaker=speaker) for _, text, speaker in pending]
            vectors = encode(encoder, texts)
            with self._log.writing() as connection:
                self._check_still_ours(connection, made_by)
                connection.executemany(
                    # Selects from chunks, so that one forgotten meanwhile leaves no vector behind.
                    "INSERT OR REPLACE INTO vectors_next SELECT seq, ? FROM chunks WHERE seq = ?",
                    [(v.tobytes(), seq) for (seq, *_), v in zip(pending, vectors, strict=True)],
                )

    def _check_still_ours(self, connection: sqlite3.Connection, made_by: str) -> None:
        if get_meta(connection, NEXT_ENCODER) != made_by:
            raise StoreUnavailableError(
                f"another process re-embedded {self._log.location} meanwhile; "
                "open it again, and start over if it still needs a reindex"
            )


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


def _swap(connection: sqlite3.Connection, encoder_id: str) -> int:
    connection.execute("DELETE FROM vectors_next WHERE seq NOT IN (SELECT seq FROM chunks)")
    connection.execute("DROP TABLE vectors")
    connection.execute("ALTER TABLE vectors_next RENAME TO vectors")
    connection.execute("CREATE TABLE vectors_next (seq INTEGER PRIMARY KEY, vector BLOB NOT NULL)")
    connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (NEXT_ENCODER, ELSEWHERE))
    set_meta(connection, ENCODER, encoder_id)
    set_meta(connection, VERSION, str(TEXT_VERSION))
    next_generation(connection)
    count: int = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
    return count
