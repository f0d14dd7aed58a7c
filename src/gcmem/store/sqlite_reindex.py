"""Re-embeds a SQLite store: new vectors are written beside the old ones and swapped in."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager

from gcmem.errors import StoreUnavailableError
from gcmem.protocols import Encoder, Progress
from gcmem.store.sqlite.file import get_meta, set_meta
from gcmem.vectors import encode

BATCH = 256
ENCODER = "reindex_encoder_id"

Writing = Callable[[], AbstractContextManager[sqlite3.Connection]]


def rebuild(writing: Writing, *, encoder: Encoder, location: str, progress: Progress | None) -> int:
    """Embeds every chunk and returns their number; `writing` opens a transaction."""
    with writing() as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS vectors_next "
            "(seq INTEGER PRIMARY KEY, vector BLOB NOT NULL)"
        )
        if get_meta(connection, ENCODER) != encoder.id:
            connection.execute("DELETE FROM vectors_next")
            set_meta(connection, ENCODER, encoder.id)
    while True:
        with writing() as connection:
            _check_still_ours(connection, encoder.id, location)
            pending = connection.execute(
                "SELECT seq, text FROM chunks WHERE seq NOT IN (SELECT seq FROM vectors_next) "
                f"ORDER BY seq LIMIT {BATCH}"
            ).fetchall()
            if not pending:
                return _swap(connection, encoder.id)
            done = connection.execute("SELECT count(*) FROM vectors_next").fetchone()[0]
            total = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
        if progress is not None:
            progress(done, total)
        vectors = encode(encoder, [text for _, text in pending])
        with writing() as connection:
            _check_still_ours(connection, encoder.id, location)
            connection.executemany(
                # Selects from chunks, so that one forgotten meanwhile leaves no vector behind.
                "INSERT OR REPLACE INTO vectors_next SELECT seq, ? FROM chunks WHERE seq = ?",
                [(v.tobytes(), seq) for (seq, _), v in zip(pending, vectors, strict=True)],
            )


def _check_still_ours(connection: sqlite3.Connection, encoder_id: str, location: str) -> None:
    if get_meta(connection, ENCODER) != encoder_id:
        raise StoreUnavailableError(
            f"another process re-embedded {location} meanwhile; "
            "open it again, and start over if it still needs a reindex"
        )


def _swap(connection: sqlite3.Connection, encoder_id: str) -> int:
    connection.execute("DELETE FROM vectors_next WHERE seq NOT IN (SELECT seq FROM chunks)")
    connection.execute("DROP TABLE vectors")
    connection.execute("ALTER TABLE vectors_next RENAME TO vectors")
    connection.execute("DELETE FROM meta WHERE key = ?", (ENCODER,))
    set_meta(connection, "encoder_id", encoder_id)
    set_meta(connection, "generation", str(int(get_meta(connection, "generation") or 0) + 1))
    count: int = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
    return count
