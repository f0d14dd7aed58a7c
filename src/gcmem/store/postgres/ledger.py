"""The ledger in PostgreSQL: verdicts, pins and what was judged, in the log's database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gcmem.protocols import Pin
from gcmem.store.digests import question_digest
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.types import Verdict, utc

if TYPE_CHECKING:
    from psycopg import Connection

SAME = "older, older_first, older_last, newer, newer_first, newer_last, judge, kind, question"
"""What verdicts have in common of which the last one counts."""
COLUMNS = f"{SAME}, score, reason, recorded_at"
UP_TO = "coalesce((SELECT up_to FROM gcmem_judges WHERE judge = %s), 0)"


class PostgresLedger:
    """Keeps everything in the log's database, and writes in the log's way: durably."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def record(self, verdicts: Sequence[Verdict]) -> None:
        """Appends verdicts."""
        if verdicts:
            with self._database.transaction() as connection:
                _append(connection, verdicts)

    def record_judged(
        self, judge: str, found: Mapping[int, Sequence[Verdict]], *, up_to: int | None = None
    ) -> int:
        """Marks chunks as judged and appends their verdicts, once for each chunk."""
        if not found and not up_to:
            return 0
        with self._database.transaction() as connection:
            before = _lock_judge(connection, judge)
            new = sorted(found.keys() - _judged(connection, judge, list(found)))
            done = max(before, up_to or 0)
            if new or done > before:
                _append(connection, [verdict for seq in new for verdict in found[seq]])
                connection.execute(
                    "INSERT INTO gcmem_judged SELECT %s, seq "
                    "FROM unnest(%s::bigint[]) AS new (seq)",
                    (judge, [seq for seq in new if seq > done]),
                )
                connection.execute(
                    "DELETE FROM gcmem_judged WHERE judge = %s AND seq <= %s", (judge, done)
                )
                connection.execute(
                    "UPDATE gcmem_judges SET up_to = %s, n = DEFAULT WHERE judge = %s",
                    (done, judge),
                )
        return len(new)

    def verdicts(self, older: Sequence[str], *, questions: Sequence[str] = ("",)) -> list[Verdict]:
        """Returns what counts about these older chunks, in the order it was recorded."""
        if not older or not questions:
            return []
        asked = {question_digest(question): question for question in questions}
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM (SELECT DISTINCT ON ({SAME}) n, {COLUMNS} "
                "FROM gcmem_verdicts WHERE older = ANY(%s) AND question = ANY(%s) "
                f"ORDER BY {SAME}, n DESC) AS last ORDER BY n",
                (list(older), list(asked)),
            ).fetchall()
        return [_verdict(row, asked) for row in rows]

    def judged(self, judge: str, seqs: Sequence[int]) -> set[int]:
        """Returns which of the chunks a judge has read."""
        with self._database.reading() as connection:
            return _judged(connection, judge, seqs)

    def judged_up_to(self, judge: str) -> int:
        """Returns the sequence number up to which a judge has read everything."""
        with self._database.reading() as connection:
            row = connection.execute(f"SELECT {UP_TO}", (judge,)).fetchone()
        return int(row[0]) if row else 0

    def pending(self, judge: str) -> int:
        """Returns how many chunks a judge has not read."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM gcmem_chunks AS chunks WHERE seq > {UP_TO} AND NOT EXISTS "
                "(SELECT FROM gcmem_judged AS judged "
                "WHERE judged.judge = %s AND judged.seq = chunks.seq)",
                (judge, judge),
            ).fetchone()
        return int(row[0]) if row else 0

    def judges(self) -> list[str]:
        """Returns the judges that have read something, the one that recorded last first."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT judge FROM gcmem_judges ORDER BY n DESC").fetchall()
        return [row[0] for row in rows]

    def lease(self, holder: str, *, seconds: float) -> bool:
        """Takes or renews the right to judge ahead, by the server's clock."""
        with self._database.transaction() as connection:
            # Not now(), which is when the transaction began: it may have waited for another one.
            taken = connection.execute(
                "UPDATE gcmem_lease "
                "SET holder = %s, until = clock_timestamp() + make_interval(secs => %s) "
                "WHERE holder = %s OR until <= clock_timestamp()",
                (holder, seconds, holder),
            ).rowcount
        return bool(taken)

    def release(self, holder: str) -> None:
        """Gives the right to judge ahead back."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE gcmem_lease SET until = '-infinity' WHERE holder = %s", (holder,)
            )

    def pin(self, pin: Pin) -> None:
        """Appends a pin, or that it is taken back."""
        at = utc(pin.recorded_at, name="recorded_at")
        with self._database.transaction() as connection:
            if lock_stored(connection, {pin.chunk_id}):
                connection.execute(
                    "INSERT INTO gcmem_pins (chunk, is_pinned, person, recorded_at) "
                    "VALUES (%s, %s, %s, %s)",
                    (pin.chunk_id, pin.is_pinned, pin.by, at),
                )

    def pins(self, ids: Sequence[str]) -> dict[str, Pin]:
        """Returns the pins of chunks that are pinned now."""
        if not ids:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT chunk, person, recorded_at FROM (SELECT DISTINCT ON (chunk) * "
                "FROM gcmem_pins WHERE chunk = ANY(%s) ORDER BY chunk, n DESC) AS last "
                "WHERE is_pinned ORDER BY n",
                (list(ids),),
            ).fetchall()
        return {
            chunk_id: Pin(
                chunk_id=chunk_id, is_pinned=True, by=by, recorded_at=utc(at, name="recorded_at")
            )
            for chunk_id, by, at in rows
        }

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes what is known about these chunks, in the log's transaction."""
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM gcmem_verdicts WHERE older = ANY(%s) OR newer = ANY(%s)",
                (list(ids), list(ids)),
            )
            connection.execute("DELETE FROM gcmem_pins WHERE chunk = ANY(%s)", (list(ids),))

    def close(self) -> None:
        """Does nothing: the log closes the connections."""


@contextmanager
def unhurried_commit(database: PostgresDatabase) -> Iterator[Connection[Any]]:
    """Yields a connection in a transaction whose commit does not wait for the server's disk."""
    with database.transaction() as connection:
        connection.execute("SET LOCAL synchronous_commit = off")
        yield connection


def lock_stored(connection: Connection[Any], ids: set[str]) -> set[str]:
    """Returns the ids that are in the log, and locks them against deletion until the commit.

    Chunks that are being deleted right now are skipped: waiting for them could deadlock.
    """
    rows = connection.execute(
        "SELECT id FROM gcmem_chunks WHERE id = ANY(%s) FOR KEY SHARE SKIP LOCKED", (sorted(ids),)
    ).fetchall()
    return {row[0] for row in rows}


def _lock_judge(connection: Connection[Any], judge: str) -> int:
    """Returns the number up to which a judge has read everything, and locks it until the commit.

    A lock on the chunks' marks would not do: they are deleted once that number has passed them.
    """
    connection.execute(
        "INSERT INTO gcmem_judges (judge) VALUES (%s) ON CONFLICT DO NOTHING", (judge,)
    )
    row = connection.execute(
        "SELECT up_to FROM gcmem_judges WHERE judge = %s FOR UPDATE", (judge,)
    ).fetchone()
    return int(row[0])


def _judged(connection: Connection[Any], judge: str, seqs: Sequence[int]) -> set[int]:
    # In one statement: between two, marks could be deleted because the number has passed them.
    rows = connection.execute(
        f"SELECT seq FROM unnest(%s::bigint[]) AS asked (seq) WHERE seq <= {UP_TO} OR EXISTS "
        "(SELECT FROM gcmem_judged AS judged WHERE judged.judge = %s AND judged.seq = asked.seq)",
        (list(seqs), judge, judge),
    ).fetchall()
    return {row[0] for row in rows}


def _append(connection: Connection[Any], verdicts: Sequence[Verdict]) -> None:
    """Appends verdicts in their order, without those on chunks that are no longer in the log."""
    stored = lock_stored(connection, {i for v in verdicts for i in (v.older, v.newer)})
    with connection.cursor().copy(f"COPY gcmem_verdicts ({COLUMNS}) FROM STDIN") as copy:
        for verdict in verdicts:
            if verdict.older in stored and verdict.newer in stored:
                copy.write_row(_row(verdict))


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
        verdict.recorded_at,
    )


def _verdict(row: tuple[Any, ...], asked: Mapping[bytes, str]) -> Verdict:
    older, older_first, older_last, newer, newer_first, newer_last, judge, kind, *rest = row
    question, score, reason, recorded_at = rest
    return Verdict(
        older=older,
        older_span=(older_first, older_last),
        newer=newer,
        newer_span=(newer_first, newer_last),
        oracle=judge,
        by=kind,
        question=asked[question],
        score=score,
        reason=reason,
        recorded_at=recorded_at,
    )
