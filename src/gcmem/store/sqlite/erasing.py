"""Finishes erasing: removes deleted rows from the write-ahead log and from unused space.

`secure_delete` overwrites a deleted row with zeros, but two kinds of copies remain. The write-ahead
log keeps the old row until a checkpoint empties it, which must wait while another process reads.
If SQLite ever moved the row to another page, its bytes may remain in unused space; only rewriting
the whole file removes them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing, suppress

from gcmem.store.sqlite.file import StoreFile, get_meta, set_meta, transaction

WAIT_S = 0.25
"""How long a forget waits for readers. Short, because writers wait too."""
RETRY_S = 0.5
QUIET_S = 5.0
"""How long after the last forget the file is rewritten."""
REWRITE_UP_TO_BYTES = 128 * 2**20
"""A larger file is not rewritten automatically: writers would wait for a second or more."""
NOT_NOW = (sqlite3.DatabaseError, OSError)
"""The file is locked, missing, or the disk is full: the eraser tries again later."""
EMPTIED = "erased_up_to"
REWRITTEN = "rewritten_up_to"


class Eraser:
    """Erases on its own connection; its thread runs only while something is left to erase.

    The store records the last tombstone that was finished, so the next process that opens it
    continues from there.
    """

    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._thread_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._last_forget = -QUIET_S
        self._forgot = False
        if not (file.in_memory or file.read_only) and self._left(file.connection):
            self._start()

    def finish(self) -> None:
        """Empties the write-ahead log after a deletion, or leaves that to the thread."""
        if self._file.in_memory:
            return
        self._forgot = True
        self._last_forget = time.monotonic()
        with suppress(*NOT_NOW):
            self._empty_log(wait_s=WAIT_S)
        self._start()

    def left(self, connection: sqlite3.Connection) -> str | None:
        """Describes what is still to be erased, and when that happens; None if nothing is."""
        if self._file.in_memory or EMPTIED not in self._left(connection):
            return None
        name = self._file.path.name
        return (
            f"the forgotten chunks can't be read any more, but their bytes are still in {name} and "
            f"{name}-wal while another process reads the store; they are erased within seconds "
            "after it stops reading, or when the store is next opened"
        )

    def close(self) -> None:
        """Stops the thread and tries one last time."""
        self._closed.set()
        if (thread := self._thread) is not None:
            thread.join()
        if self._forgot:
            with suppress(*NOT_NOW):
                self._step(quiet=True)

    def _start(self) -> None:
        with self._thread_lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._work, name="gcmem-eraser", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while not self._closed.wait(RETRY_S):
            is_done = False
            with suppress(*NOT_NOW):
                is_done = self._step(quiet=time.monotonic() >= self._last_forget + QUIET_S)
            with self._thread_lock:
                # Checked under the lock, so that a forget from now on starts a new thread.
                if is_done and time.monotonic() >= self._last_forget + QUIET_S:
                    self._thread = None
                    return

    def _step(self, *, quiet: bool) -> bool:
        """Erases what it can now; returns whether everything is done."""
        with closing(self._file.connect(timeout_s=0)) as connection:
            left = self._left(connection)
        if EMPTIED in left and not self._empty_log(wait_s=0):
            return False
        if REWRITTEN in left:
            return quiet and self._rewrite()
        return True

    def _left(self, connection: sqlite3.Connection) -> list[str]:
        last = _last_tombstone(connection)
        return [key for key in (EMPTIED, REWRITTEN) if int(get_meta(connection, key) or 0) < last]

    def _empty_log(self, *, wait_s: float) -> bool:
        with self._lock, closing(self._file.connect(timeout_s=wait_s)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            last = _last_tombstone(connection)
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            if busy:
                return False
            with transaction(connection):
                if int(get_meta(connection, EMPTIED) or 0) < last:
                    set_meta(connection, EMPTIED, str(last))
            return True

    def _rewrite(self) -> bool:
        """Rewrites the file without its unused space, unless it is too large."""
        if os.stat(self._file.path).st_size > REWRITE_UP_TO_BYTES:
            return True
        # Not while anyone reads: the log would hold the whole file until the reader is done.
        if not self._empty_log(wait_s=0):
            return False
        with self._lock, closing(self._file.connect(timeout_s=WAIT_S)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            last = _last_tombstone(connection)
            connection.execute("VACUUM")
            # The old pages stay in the file until the log is emptied, so it is not done yet.
            with transaction(connection):
                set_meta(connection, REWRITTEN, str(last))
                set_meta(connection, EMPTIED, "0")
        return self._empty_log(wait_s=WAIT_S)


def _last_tombstone(connection: sqlite3.Connection) -> int:
    found = connection.execute("SELECT max(n) FROM tombstones").fetchone()[0]
    return int(found or 0)
