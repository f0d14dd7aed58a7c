"""The embedded ledger: verdicts, pins and what was judged, in the log's file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from gcmem.protocols import Pin
from gcmem.store.digests import question_digest
from gcmem.store.sqlite.file import get_meta, set_meta
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.store.sqlite.rows import EPOCH, to_micros
from gcmem.store.sqlite.side_connection import PAGE
from gcmem.types import Verdict

JUDGED = "judged_up_to:"
LEASE = "judging"
COLUMNS = (
    "older, older_first, older_last, newer, newer_first, newer_last, judge, kind, question, score, "
    "reason, recorded_at"
)
# Checked in the writing transaction: a chunk may have been forgotten while it was judged.
INSERT = (
    f"INSERT INTO verdicts ({COLUMNS}) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 "
    "WHERE EXISTS (SELECT 1 FROM chunks WHERE id = ?1) AND "
    "EXISTS (SELECT 1 FROM chunks WHERE id = ?4)"
)
NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


class SQLiteLedger:
    """Keeps everything in the log's file, and writes in the log's way: durably."""

    def __init__(self, log: SQLiteLog) -> None:
        self._log = log

    def record(self, verdicts: Sequence[Verdict]) -> None:
        """Appends verdicts."""
        if verdicts:
            with self._log.writing() as connection:
                connection.executemany(INSERT, map(_row, verdicts))

    def record_judged(
        self, judge: str, found: Mapping[int, Sequence[Verdict]], *, up_to: int | None = None
    ) -> int:
        """Marks chunks as judged and appends their verdicts, once for each chunk."""
        with self._log.writing() as connection:
            new = found.keys() - self.judged(judge, list(found))
            for seq in sorted(new):
                connection.executemany(INSERT, map(_row, found[seq]))
                connection.execute("INSERT INTO judged VALUES (?,?)", (judge, seq))
            reached = max(up_to or 0, _judged_up_to(connection, judge))
            set_meta(connection, JUDGED + judge, str(reached))
            connection.execute("DELETE FROM judged WHERE judge = ? AND seq <= ?", (judge, reached))
        return len(new)

    def verdicts(self, older: Sequence[str], *, questions: Sequence[str] = ("",)) -> list[Verdict]:
        """Returns what counts about these older chunks, in the order it was recorded."""
        asked = {question_digest(question): question for question in questions}
        wanted = ",".join("?" * len(asked))
        rows: list[tuple[Any, ...]] = []
        for page in _pages(older):
            with self._log.reading() as connection:
                rows += connection.execute(
                    f"SELECT n, {COLUMNS} FROM verdicts WHERE older IN "
                    f"({','.join('?' * len(page))}) AND question IN ({wanted}) ORDER BY n",
                    [*page, *asked],
                ).fetchall()
        last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for row in sorted(rows):
            last.pop(row[1:10], None)  # what is said again counts from then on
            last[row[1:10]] = row[1:]
        return [_verdict(row, question=asked[row[8]]) for row in last.values()]

    def judged(self, judge: str, seqs: Sequence[int]) -> set[int]:
        """Returns which of the chunks a judge has read."""
        found: set[int] = set()
        with self._log.reading() as connection:
            up_to = _judged_up_to(connection, judge)
            for page in _pages([seq for seq in seqs if seq > up_to]):
                rows = connection.execute(
                    "SELECT seq FROM judged WHERE judge = ? AND seq IN "
                    f"({','.join('?' * len(page))})",
                    [judge, *page],
                )
                found.update(row[0] for row in rows)
        return found | {seq for seq in seqs if seq <= up_to}

    def judged_up_to(self, judge: str) -> int:
        """Returns the sequence number up to which a judge has read everything."""
        with self._log.reading() as connection:
            return _judged_up_to(connection, judge)

    def pending(self, judge: str) -> int:
        """Returns how many chunks a judge has not read."""
        with self._log.reading() as connection:
            up_to = _judged_up_to(connection, judge)
            row = connection.execute(
                "SELECT count(*) FROM chunks WHERE seq > ?1 AND NOT EXISTS "
                "(SELECT 1 FROM judged WHERE judge = ?2 AND judged.seq = chunks.seq)",
                (up_to, judge),
            ).fetchone()
        return int(row[0])

    def judges(self) -> list[str]:
        """Returns the judges that have read something, the last one first."""
        with self._log.reading() as connection:
            rows = connection.execute(
                "SELECT substr(key, ?), rowid FROM meta WHERE key LIKE ? ORDER BY rowid DESC",
                (len(JUDGED) + 1, f"{JUDGED}%"),
            ).fetchall()
        return [row[0] for row in rows]

    def lease(self, holder: str, *, seconds: float) -> bool:
        """Takes or renews the right to judge ahead."""
        with self._log.writing() as connection:
            now: int = connection.execute(f"SELECT {NOW}").fetchone()[0]
            until, _, by = (get_meta(connection, LEASE) or "0 ").partition(" ")
            if by != holder and int(until) > now:
                return False
            set_meta(connection, LEASE, f"{now + round(seconds * 1000)} {holder}")
        return True

    def release(self, holder: str) -> None:
        """Gives the right to judge ahead back."""
        with self._log.writing() as connection:
            connection.execute(
                "DELETE FROM meta WHERE key = ? AND substr(value, instr(value, ' ') + 1) = ?",
                (LEASE, holder),
            )

    def pin(self, pin: Pin) -> None:
        """Appends a pin, or that it is taken back."""
        with self._log.writing() as connection:
            connection.execute(
                "INSERT INTO pins (chunk, is_pinned, person, recorded_at) SELECT ?1, ?2, ?3, ?4 "
                "WHERE EXISTS (SELECT 1 FROM chunks WHERE id = ?1)",
                (pin.chunk_id, pin.is_pinned, pin.by, to_micros(pin.recorded_at)),
            )

    def pins(self, ids: Sequence[str]) -> dict[str, Pin]:
        """Returns the pins of chunks that are pinned now."""
        found: dict[str, Pin] = {}
        for page in _pages(ids):
            with self._log.reading() as connection:
                rows = connection.execute(
                    "SELECT chunk, is_pinned, person, recorded_at FROM pins WHERE chunk IN "
                    f"({','.join('?' * len(page))}) ORDER BY n",
                    page,
                ).fetchall()
            for chunk_id, is_pinned, by, recorded_at in rows:
                at = EPOCH + timedelta(microseconds=recorded_at)
                pin = Pin(chunk_id=chunk_id, is_pinned=bool(is_pinned), by=by, recorded_at=at)
                found[chunk_id] = pin
        return {chunk_id: pin for chunk_id, pin in found.items() if pin.is_pinned}

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes what is known about these chunks, in the log's transaction."""
        keys = [(chunk_id,) for chunk_id in ids]
        with self._log.writing() as connection:
            connection.executemany("DELETE FROM verdicts WHERE older = ?1 OR newer = ?1", keys)
            connection.executemany("DELETE FROM pins WHERE chunk = ?", keys)

    def close(self) -> None:
        """Does nothing: the log closes the file."""


def _pages(values: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(values), PAGE):
        yield list(values[start : start + PAGE])


def _judged_up_to(connection: sqlite3.Connection, judge: str) -> int:
    return int(get_meta(connection, JUDGED + judge) or 0)


def _row(verdict: Verdict) -> tuple[Any, ...]:
    assert verdict.recorded_at is not None
    return (
        verdict.older,
        *verdict.older_span,
        verdict.newer,
        *verdict.newer_span,
        verdict.oracle,
        verdict.by,
        question_digest(verdict.question),
        verdict.score,
        verdict.reason,
        to_micros(verdict.recorded_at),
    )


def _verdict(row: tuple[Any, ...], *, question: str) -> Verdict:
    older, older_first, older_last, newer, newer_first, newer_last, judge, kind, *rest = row
    _, score, reason, recorded_at = rest
    return Verdict(
        older=older,
        older_span=(older_first, older_last),
        newer=newer,
        newer_span=(newer_first, newer_last),
        oracle=judge,
        by=kind,
        question=question,
        score=score,
        reason=reason,
        recorded_at=EPOCH + timedelta(microseconds=recorded_at),
    )
