"""The embedded verdict cache: scores and conflict edges, in tables beside the log."""

from __future__ import annotations

import hashlib
import math
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from gcmem.store.sqlite_file import IN_MEMORY, transaction, translated_errors
from gcmem.types import Conflict

PAGE = 400
BUSY_TIMEOUT_S = 0.05
LINKED = "linked_up_to:"


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
            self._connection.executescript(
                "CREATE TABLE verdicts (older, newer, oracle, question, score, "
                "PRIMARY KEY (older, newer, oracle, question)) WITHOUT ROWID;"
                "CREATE TABLE edges (older, newer, oracle, score, "
                "PRIMARY KEY (older, oracle, newer)) WITHOUT ROWID;"
                "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)"
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

    def link(self, conflicts: Sequence[Conflict]) -> None:
        """Keeps conflicts as edges."""
        with self._lock, suppress(sqlite3.DatabaseError):
            # Every search finds the same conflicts again; writing them again would cost a commit.
            new = [c for c in conflicts if not self._is_linked(c)]
            if new:
                rows = [(c.older, c.newer, c.oracle, c.score) for c in new]
                with transaction(self._connection):
                    self._connection.executemany(
                        "INSERT OR REPLACE INTO edges VALUES (?,?,?,?)", rows
                    )

    def _is_linked(self, conflict: Conflict) -> bool:
        row = self._connection.execute(
            "SELECT 1 FROM edges WHERE older = ? AND oracle = ? AND newer = ?",
            (conflict.older, conflict.oracle, conflict.newer),
        ).fetchone()
        return row is not None

    def linked_up_to(self, oracle: str) -> int:
        """Returns the sequence number up to which an oracle has linked the chunks."""
        with self._lock, translated_errors(self._location):
            row = self._connection.execute(
                "SELECT value FROM meta WHERE key = ?", (LINKED + oracle,)
            ).fetchone()
        return int(row[0]) if row else 0

    def set_linked_up_to(self, oracle: str, seq: int) -> None:
        """Keeps how far an oracle has come; lost, the chunks behind it are judged once more."""
        with self._lock, suppress(sqlite3.DatabaseError), transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO meta VALUES (?,?)", (LINKED + oracle, str(seq))
            )

    def witnesses(self, oracle: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """Returns the newer ends of the known edges of the given chunks."""
        found: dict[str, list[str]] = {}
        for start in range(0, len(ids), PAGE):
            page = list(ids[start : start + PAGE])
            marks = ",".join("?" * len(page))
            with self._lock, translated_errors(self._location):
                rows = self._connection.execute(
                    f"SELECT older, newer FROM edges WHERE older IN ({marks}) AND oracle = ? "
                    "ORDER BY older, newer",
                    [*page, oracle],
                ).fetchall()
            for older, newer in rows:
                found.setdefault(older, []).append(newer)
        return found

    def close(self) -> None:
        """Releases the connection."""
        with self._lock:
            self._connection.close()


def _digest(question: str) -> bytes:
    return hashlib.blake2b(question.casefold().encode(), digest_size=8).digest()
