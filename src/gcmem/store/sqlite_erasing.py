"""Finishes erasing: takes what was deleted out of the write-ahead log and out of unused space.

`secure_delete` overwrites a deleted row with zeros. Two kinds of copies are left. The write-ahead
log holds the row as it was until a checkpoint empties it, and that has to wait while another
process reads. And where SQLite once moved a row to another page, its bytes may remain in unused
space; only writing the whole file anew takes them away.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing, suppress

from gcmem.store.sqlite.file import StoreFile, get_meta, set_meta, transaction

WAIT_S = 0.25
"""How long a forget waits for readers. Writers wait with it, so it is short."""
RETRY_S = 0.5
QUIET_S = 5.0
"""How long after the last forget the file is written anew."""
REWRITE_UP_TO_BYTES = 128 * 2**20
"""A larger file is not written anew unasked: writers would wait for a second or more."""
NOT_NOW = (sqlite3.DatabaseError, OSError)
"""Locked, full or taken away: it is tried again."""
EMPTIED = "erased_up_to"
REWRITTEN = "rewritten_up_to"


class Eraser:
    """Works on a connection of its own, in a thread only while something is left to erase.

    The store remembers up to which tombstone it is done, so what a process leaves is finished by
    the next one that opens the store.
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
        """Called after a deletion: empties the log, or leaves it to the thread."""
        if self._file.in_memory:
            return
        self._forgot = True
        self._last_forget = time.monotonic()
        with suppress(*NOT_NOW):
            self._empty_log(wait_s=WAIT_S)
        self._start()

    def left(self, connection: sqlite3.Connection) -> str | None:
        """Says what is still to be erased and when it goes; None if there is nothing."""
        if self._file.in_memory or EMPTIED not in self._left(connection):
            return None
        name = self._file.path.name
        return (
            f"the forgotten chunks can't be read any more, but their bytes are still in {name} and "
            f"{name}-wal while another process reads the store; they go within seconds of its end, "
            "or when the store is opened next"
        )

    def close(self) -> None:
        """Tries a last time, and ends the thread."""
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
                # Under the lock: a forget that comes now starts a new thread.
                if is_done and time.monotonic() >= self._last_forget + QUIET_S:
                    self._thread = None
                    return

    def _step(self, *, quiet: bool) -> bool:
        """Does what can be done now, and returns whether nothing is left."""
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
        """Writes the file anew without its unused space, unless it is too large for that."""
        if os.stat(self._file.path).st_size > REWRITE_UP_TO_BYTES:
            return True
        # Not while somebody reads: the log would hold the whole file until the reader ends.
        if not self._empty_log(wait_s=0):
            return False
        with self._lock, closing(self._file.connect(timeout_s=WAIT_S)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            last = _last_tombstone(connection)
            connection.execute("VACUUM")
            # The old pages are in the file until the log is emptied: not done before that.
            with transaction(connection):
                set_meta(connection, REWRITTEN, str(last))
                set_meta(connection, EMPTIED, "0")
        return self._empty_log(wait_s=WAIT_S)


def _last_tombstone(connection: sqlite3.Connection) -> int:
    found = connection.execute("SELECT max(n) FROM tombstones").fetchone()[0]
    return int(found or 0)
