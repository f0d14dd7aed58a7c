"""The embedded verdict cache: a table beside the log."""

from __future__ import annotations

import hashlib
import math
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from gcmem.store.sqlite_file import IN_MEMORY, transaction, translated_errors

PAGE = 400
BUSY_TIMEOUT_S = 0.05


class SQLiteVerdicts:
    """Keeps scores in the store's file, on a connection of its own.

    A verdict can always be made again, so writing one neither waits for the disk nor for another
    writer: if it can't be kept, it is simply not kept.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            location, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if location == IN_MEMORY:
            self._connection.execute(
                "CREATE TABLE verdicts (older, newer, oracle, question, score, "
                "PRIMARY KEY (older, newer, oracle, question)) WITHOUT ROWID"
            )

    def get(
        self, oracle: str, question: str, pairs: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], float]:
        """Returns the known scores."""
        digest = _digest(question)
        known: dict[tuple[str, str], float] = {}
        for start in range(0, len(pairs), PAGE):
            page = pairs[start : start + PAGE]
            values = [part for pair in page for part in pair]
            rows = ",".join(["(?,?)"] * len(page))
            with self._lock, translated_errors(self._location):
                found = self._connection.execute(
                    f"SELECT older, newer, score FROM verdicts WHERE (older, newer) IN "
                    f"(VALUES {rows}) AND oracle = ? AND question = ?",
                    [*values, oracle, digest],
                ).fetchall()
            known.update(((older, newer), score) for older, newer, score in found)
        return known

    def put(self, oracle: str, question: str, scores: Mapping[tuple[str, str], float]) -> None:
        """Keeps scores, unless another process is writing just now."""
        digest = _digest(question)
        rows = [
            (older, newer, oracle, digest, score)
            for (older, newer), score in scores.items()
            if math.isfinite(score)
        ]
        # Busy, read-only or full: a verdict can always be made again.
        with self._lock, suppress(sqlite3.DatabaseError), transaction(self._connection):
            self._connection.executemany("INSERT OR REPLACE INTO verdicts VALUES (?,?,?,?,?)", rows)

    def close(self) -> None:
        """Releases the connection."""
        with self._lock:
            self._connection.close()


def _digest(question: str) -> bytes:
    return hashlib.blake2b(question.casefold().encode(), digest_size=8).digest()
