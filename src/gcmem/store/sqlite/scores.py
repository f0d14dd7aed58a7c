"""The embedded score cache: a table beside the log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gcmem.protocols import ScoreKey
from gcmem.store.digests import question_digest
from gcmem.store.sqlite.file import IN_MEMORY
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.store.sqlite.side_connection import PAGE, SideConnection

# Checked in the writing transaction: a chunk may have been forgotten since the search began.
IS_STORED = (
    "EXISTS (SELECT 1 FROM chunks WHERE id = ?1) AND "
    "(?3 = 'stance' OR EXISTS (SELECT 1 FROM chunks WHERE id = ?2))"
)


class SQLiteScores:
    """Keeps scores in the log's file; without a log, in memory and about any ids."""

    def __init__(self, log: SQLiteLog | None = None) -> None:
        self._condition = "1" if log is None else IS_STORED
        self._log = log or SQLiteLog(IN_MEMORY)
        self._side = SideConnection(self._log)

    def get(self, key: ScoreKey, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Returns the known scores."""
        digest = question_digest(key.question)
        known: dict[tuple[str, str], float] = {}
        for start in range(0, len(pairs), PAGE):
            page = pairs[start : start + PAGE]
            values = [part for pair in page for part in pair]
            rows = ",".join(["(?,?)"] * len(page))
            with self._side.reading() as connection:
                found = connection.execute(
                    f"SELECT first, second, score FROM scores WHERE (first, second) IN "
                    f"(VALUES {rows}) AND kind = ? AND scorer = ? AND question = ?",
                    [*values, key.kind, key.scorer, digest],
                ).fetchall()
            known.update(((first, second), score) for first, second, score in found)
        return known

    def put(self, key: ScoreKey, scores: Mapping[tuple[str, str], float]) -> None:
        """Keeps scores, unless another process is writing right now."""
        digest = question_digest(key.question)
        rows = [
            (first, second, key.kind, key.scorer, digest, score)
            for (first, second), score in scores.items()
            if math.isfinite(score)
        ]
        self._side.try_to_write(
            f"INSERT OR REPLACE INTO scores SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE {self._condition}",
            rows,
        )

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes the scores of these chunks, in the log's transaction."""
        keys = [(chunk_id,) for chunk_id in ids]
        with self._log.writing() as connection:
            connection.executemany("DELETE FROM scores WHERE first = ?", keys)
            connection.executemany("DELETE FROM scores WHERE second = ? AND kind != 'stance'", keys)

    def close(self) -> None:
        """Closes the connection."""
        self._side.close()
