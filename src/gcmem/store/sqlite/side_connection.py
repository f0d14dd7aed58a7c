"""A second connection to the store's file, for what can be computed again."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from gcmem.store.sqlite.file import transaction, translated_errors
from gcmem.store.sqlite.log import SQLiteLog

PAGE = 400
BUSY_TIMEOUT_S = 0.05


class SideConnection:
    """Writes wait neither for the disk nor for another writer: a write that fails is dropped.

    A store in memory has only one connection, so there this is the log's.
    """

    def __init__(self, log: SQLiteLog) -> None:
        self._location = log.location
        self._lock: AbstractContextManager[object]
        self._is_shared = log.file.in_memory
        if self._is_shared:
            self._lock, self._connection = log.lock, log.file.connection
        else:
            self._lock = threading.RLock()
            self._connection = log.file.connect(timeout_s=BUSY_TIMEOUT_S)
            self._connection.execute("PRAGMA synchronous = NORMAL")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yields the connection; nobody else uses it meanwhile."""
        with self._lock, translated_errors(self._location):
            yield self._connection

    def try_to_write(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Executes a statement for each row, all or none; gives up if the file is busy or full."""
        with self._lock, suppress(sqlite3.DatabaseError), transaction(self._connection):
            self._connection.executemany(statement, rows)

    def close(self) -> None:
        """Closes the connection, unless it is the log's."""
        if not self._is_shared:
            with self._lock:
                self._connection.close()
