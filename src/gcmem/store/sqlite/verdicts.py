"""The embedded verdict cache: scores and conflict edges, in tables beside the log."""

from __future__ import annotations

import hashlib
import math
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress

from gcmem.store.sqlite.file import IN_MEMORY, transaction, translated_errors
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.types import OPTION, Conflict

PAGE = 400
BUSY_TIMEOUT_S = 0.05
LINKED = "linked_up_to:"
# Checked in the writing transaction: a chunk may have been forgotten since the search began.
BOTH_EXIST = (
    "EXISTS (SELECT 1 FROM chunks WHERE id = ?1) AND "
    f"(?2 LIKE '{OPTION}%' OR EXISTS (SELECT 1 FROM chunks WHERE id = ?2))"
)


class SQLiteVerdicts:
    """Stores verdicts in the log's file, on its own connection.

    A verdict can always be computed again, so a write waits neither for the disk nor for another
    writer: if it fails, the verdict is dropped. Verdicts on chunks that are not in the log are
    dropped too. Without a log, all verdicts are stored in memory.
    """

    def __init__(self, log: SQLiteLog | None = None) -> None:
        self._condition = "1" if log is None else BOTH_EXIST
        log = log or SQLiteLog(IN_MEMORY)
        self._location = log.location
        self._lock: AbstractContextManager[object]
        self._shares_connection = log.file.in_memory
        if self._shares_connection:
            self._lock, self._connection = log.lock, log.file.connection
        else:
            self._lock = threading.Lock()
            self._connection = log.file.connect(timeout_s=BUSY_TIMEOUT_S)
            self._connection.execute("PRAGMA synchronous = NORMAL")

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
        """Stores scores, unless another process is writing right now."""
        digest = _digest(question)
        rows = [
            (older, newer, oracle, digest, score)
            for (older, newer), score in scores.items()
            if math.isfinite(score)
        ]
        # Busy, read-only or full: a verdict can always be computed again.
        with self._lock, suppress(sqlite3.DatabaseError), transaction(self._connection):
            self._connection.executemany(
                "INSERT OR REPLACE INTO verdicts SELECT ?1, ?2, ?3, ?4, ?5 "
                f"WHERE {self._condition}",
                rows,
            )

    def link(self, conflicts: Sequence[Conflict]) -> None:
        """Stores conflicts as edges."""
        with self._lock, suppress(sqlite3.DatabaseError):
            # Most searches find conflicts that are stored already; skipping them saves a commit.
            new = [c for c in conflicts if not self._is_linked(c)]
            if new:
                rows = [(c.older, c.newer, c.oracle, c.score) for c in new]
                insert = "INSERT OR REPLACE INTO edges SELECT ?1, ?2, ?3, ?4"
                with transaction(self._connection):
                    self._connection.executemany(f"{insert} WHERE {self._condition}", rows)

    def _is_linked(self, conflict: Conflict) -> bool:
        row = self._connection.execute(
            "SELECT 1 FROM edges WHERE older = ? AND oracle = ? AND newer = ?",
            (conflict.older, conflict.oracle, conflict.newer),
        ).fetchone()
        return row is not None

    def linked_up_to(self, oracle: str) -> int:
        """Returns the last sequence number an oracle has checked for conflicts."""
        with self._lock, translated_errors(self._location):
            row = self._connection.execute(
                "SELECT value FROM meta WHERE key = ?", (LINKED + oracle,)
            ).fetchone()
        return int(row[0]) if row else 0

    def set_linked_up_to(self, oracle: str, seq: int) -> None:
        """Stores the last sequence number an oracle has checked; if lost, it checks again."""
        with self._lock, suppress(sqlite3.DatabaseError), transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO meta VALUES (?,?)", (LINKED + oracle, str(seq))
            )

    def witnesses(self, oracle: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """Returns the newer chunks of the stored edges, by the older chunk's id."""
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
        """Closes the connection."""
        if not self._shares_connection:
            with self._lock:
                self._connection.close()


def _digest(question: str) -> bytes:
    return hashlib.blake2b(question.casefold().encode(), digest_size=8).digest()
