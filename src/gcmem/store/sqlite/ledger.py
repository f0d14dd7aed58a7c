"""The embedded ledger: conflicts as edges from the older chunk to the newer one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from gcmem.store.sqlite.file import get_meta
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.store.sqlite.side_connection import PAGE, SideConnection
from gcmem.types import Conflict

JUDGED = "linked_up_to:"
# Checked in the writing transaction: a chunk may have been forgotten since the search began.
BOTH_ARE_STORED = (
    "EXISTS (SELECT 1 FROM chunks WHERE id = ?1) AND EXISTS (SELECT 1 FROM chunks WHERE id = ?2)"
)


class SQLiteLedger:
    """Keeps conflicts in the log's file."""

    def __init__(self, log: SQLiteLog) -> None:
        self._log = log
        self._side = SideConnection(log)

    def record(self, conflicts: Sequence[Conflict]) -> None:
        """Keeps conflicts, unless another process is writing right now."""
        with self._side.reading() as connection:
            # Most searches find conflicts that are kept already; skipping them saves a commit.
            rows = [
                (c.older, c.newer, c.oracle, c.score)
                for c in conflicts
                if not _is_recorded(connection, c)
            ]
        if rows:
            self._side.try_to_write(
                f"INSERT OR REPLACE INTO edges SELECT ?1, ?2, ?3, ?4 WHERE {BOTH_ARE_STORED}", rows
            )

    def conflicts(self, oracle: str, ids: Sequence[str]) -> dict[str, list[Conflict]]:
        """Returns an oracle's conflicts of the given older chunks, by the older chunk's id."""
        found: dict[str, list[Conflict]] = {}
        for start in range(0, len(ids), PAGE):
            page = list(ids[start : start + PAGE])
            marks = ",".join("?" * len(page))
            with self._side.reading() as connection:
                rows = connection.execute(
                    f"SELECT older, newer, score FROM edges WHERE older IN ({marks}) "
                    "AND oracle = ? ORDER BY older, newer",
                    [*page, oracle],
                ).fetchall()
            for older, newer, score in rows:
                conflict = Conflict(older=older, newer=newer, score=score, oracle=oracle)
                found.setdefault(older, []).append(conflict)
        return found

    def judged_up_to(self, oracle: str) -> int:
        """Returns the last sequence number that an oracle has judged."""
        with self._side.reading() as connection:
            return int(get_meta(connection, JUDGED + oracle) or 0)

    def set_judged_up_to(self, oracle: str, seq: int) -> None:
        """Keeps the last sequence number that an oracle has judged; if lost, it judges again."""
        self._side.try_to_write(
            "INSERT OR REPLACE INTO meta VALUES (?,?)", [(JUDGED + oracle, str(seq))]
        )

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes the conflicts of these chunks, in the log's transaction."""
        with self._log.writing() as connection:
            for end in ("older", "newer"):
                connection.executemany(
                    f"DELETE FROM edges WHERE {end} = ?", [(chunk_id,) for chunk_id in ids]
                )

    def close(self) -> None:
        """Closes the connection."""
        self._side.close()


def _is_recorded(connection: sqlite3.Connection, conflict: Conflict) -> bool:
    row = connection.execute(
        "SELECT 1 FROM edges WHERE older = ? AND oracle = ? AND newer = ?",
        (conflict.older, conflict.oracle, conflict.newer),
    ).fetchone()
    return row is not None
