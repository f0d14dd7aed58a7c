"""The embedded log: one SQLite file, WAL, synchronous=FULL."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gcmem.errors import InvalidInputError, StoreError
from gcmem.protocols import LogState, Progress
from gcmem.storable import check_chunks, check_metadata
from gcmem.store.paging import PAGE, paged
from gcmem.store.sqlite.backup import back_up
from gcmem.store.sqlite.erasing import Eraser
from gcmem.store.sqlite.file import IN_MEMORY, StoreFile, get_meta, transaction, translated_errors
from gcmem.store.sqlite.rows import COLUMNS, chunk_of, conditions_of, row_of, where_clause
from gcmem.types import Chunk, ChunkFilter

STATE = "(SELECT seq FROM sqlite_sequence WHERE name = 'chunks'), (SELECT max(n) FROM tombstones)"


class _ThreadState(threading.local):
    """Whether this thread is inside a transaction, and has erased something in it."""

    is_writing = False
    has_erased = False


class SQLiteLog:
    """An append-only log in one file; several threads and processes may use it at once."""

    def __init__(self, path: Path | str) -> None:
        self.location = IN_MEMORY if str(path) == IN_MEMORY else str(Path(path).expanduser())
        self.lock = threading.RLock()
        self.file = StoreFile(self.location)
        self._eraser = Eraser(self.file)
        self._when_erased: list[Callable[[], None]] = []
        self._thread = _ThreadState()

    @property
    def id(self) -> str:
        """A name that no other log has; a backup keeps it."""
        with self.reading() as connection:
            return str(get_meta(connection, "log_id"))

    def when_erased(self, call: Callable[[], None]) -> None:
        """Registers a function to call after chunks are erased, so that caches drop them."""
        self._when_erased.append(call)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yields the connection; nobody else uses it meanwhile."""
        with self.lock, translated_errors(self.location):
            self.file.check_in_place()
            yield self.file.connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yields the connection in a transaction, the one that this thread is in already if any."""
        if self._thread.is_writing:
            yield self.file.connection
            return
        self._thread.is_writing, self._thread.has_erased = True, False
        try:
            with self.reading() as connection:
                with transaction(connection):
                    yield connection
                # A write into a file that was replaced or deleted must not be acknowledged.
                self.file.check_in_place(wal=True)
        finally:
            self._thread.is_writing = False
        # Without the lock: an index that drops what was erased may be waiting for it.
        if self._thread.has_erased:
            for call in self._when_erased:
                call()
            self._eraser.finish()

    def transaction(self) -> AbstractContextManager[object]:
        """Joins the writes inside into one transaction."""
        return self.writing()

    def append(self, chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        """Stores all chunks or none; when it returns, they are on disk."""
        check_chunks(chunks)
        rows = [row_of(chunk) for chunk in chunks]
        with self.writing() as connection:
            last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
            first_seq = (last.fetchone() or (0,))[0] + 1
            try:
                connection.executemany(
                    f"INSERT INTO chunks ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                    [(seq, *row) for seq, row in enumerate(rows, first_seq)],
                )
            except sqlite3.IntegrityError:
                raise InvalidInputError("a chunk with one of these ids exists already") from None
        return tuple(replace(chunk, seq=seq) for seq, chunk in enumerate(chunks, first_seq))

    def get(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """Returns the chunks that exist, by id."""
        found: dict[str, Chunk] = {}
        for start in range(0, len(ids), PAGE):
            batch = list(ids[start : start + PAGE])
            marks = ",".join("?" * len(batch))
            with self.reading() as connection:
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM chunks WHERE id IN ({marks})", batch
                ).fetchall()
            found.update((row[1], chunk_of(row)) for row in rows)
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
        conditions, values = conditions_of(where)
        if after_seq:
            conditions.append("seq > ?")
            values.append(after_seq)
        key = ("at", "seq") if by_time else ("seq",)
        direction, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        order = ", ".join(f"{column} {direction}" for column in key)

        def read(last: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
            after = [f"({', '.join(key)}) {beyond} ({', '.join('?' * len(key))})"] if last else []
            with self.reading() as connection:
                return connection.execute(
                    f"SELECT {COLUMNS} FROM chunks {where_clause([*conditions, *after])} "
                    f"ORDER BY {order} LIMIT {size}",
                    [*values, *last],
                ).fetchall()

        yield from map(chunk_of, paged(read, by_time=by_time, limit=limit))

    def count(self, where: ChunkFilter) -> int:
        """Returns the number of matching chunks."""
        conditions, values = conditions_of(where)
        with self.reading() as connection:
            found: int = connection.execute(
                f"SELECT count(*) FROM chunks {where_clause(conditions)}", values
            ).fetchone()[0]
        return found

    def set_metadata(self, chunk_id: str, metadata: Mapping[str, Any]) -> Chunk | None:
        """Replaces a chunk's metadata; when it returns, the change is on disk."""
        metadata = check_metadata(metadata)
        with self.writing() as connection:
            row = connection.execute(
                f"UPDATE chunks SET metadata = ? WHERE id = ? RETURNING {COLUMNS}",
                (json.dumps(metadata, ensure_ascii=False), chunk_id),
            ).fetchone()
        return None if row is None else chunk_of(row)

    def delete(self, ids: Sequence[str]) -> list[int]:
        """Erases chunks; only their sequence numbers stay, as tombstones.

        `erasing` reports copies that are still in the file.
        """
        erased: list[int] = []
        with self.writing() as connection:
            for chunk_id in dict.fromkeys(ids):
                row = connection.execute(
                    "DELETE FROM chunks WHERE id = ? RETURNING seq", (chunk_id,)
                ).fetchone()
                if row is not None:
                    connection.execute("INSERT INTO tombstones (seq) VALUES (?)", row)
                    erased.append(row[0])
            self._thread.has_erased |= bool(erased)
        return erased

    def erasing(self) -> str | None:
        """Describes what is still to be erased, and when that happens; None if nothing is."""
        with self.reading() as connection:
            return self._eraser.left(connection)

    def backup(
        self, path: Path, *, overwrite: bool = False, progress: Progress | None = None
    ) -> int:
        """Copies the store into a file while it is in use; returns the number of chunks."""
        return back_up(self.file, path, lock=self.lock, overwrite=overwrite, progress=progress)

    def state(self) -> LogState:
        """Returns the last sequence number and the number of the last erasure."""
        with self.reading() as connection:
            row = connection.execute(f"SELECT {STATE}").fetchone()
        return LogState(*(int(mark or 0) for mark in row))

    def erased_since(self, erasure: int) -> list[int]:
        """Returns the sequence numbers erased after the given erasure."""
        with self.reading() as connection:
            rows = connection.execute("SELECT seq FROM tombstones WHERE n > ?", (erasure,))
            return [row[0] for row in rows]

    def seqs(self, where: ChunkFilter) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Returns the sequence numbers of the matching chunks, sorted."""
        conditions, values = conditions_of(where)
        with self.reading() as connection:
            rows = connection.execute(
                f"SELECT seq FROM chunks {where_clause(conditions)} ORDER BY seq", values
            ).fetchall()
        return np.array([row[0] for row in rows], dtype=np.int64)

    def check(self) -> str | None:
        """Checks the whole file for damage; returns what is wrong, or None."""
        try:
            with self.reading() as connection:
                found: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except StoreError as error:
            return str(error)
        return None if found == "ok" else found

    def close(self) -> None:
        """Closes the file."""
        self._eraser.close()
        with self.lock:
            self.file.connection.close()
