"""The ledger in PostgreSQL: conflicts as edges from the older chunk to the newer one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from gcmem.errors import StoreError
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.store.postgres.log import get_meta, set_meta
from gcmem.types import Conflict

if TYPE_CHECKING:
    from psycopg import Connection

JUDGED = "linked_up_to:"


class PostgresLedger:
    """Keeps conflicts in the log's database."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def record(self, conflicts: Sequence[Conflict]) -> None:
        """Keeps conflicts, if the server can be reached."""
        with suppress(StoreError), unhurried_commit(self._database) as connection:
            stored = lock_stored(connection, {i for c in conflicts for i in (c.older, c.newer)})
            edges = {
                (c.older, c.oracle, c.newer): c.score
                for c in conflicts
                if c.older in stored and c.newer in stored
            }
            rows = [(*key, score) for key, score in sorted(edges.items())]
            connection.execute(
                "INSERT INTO gcmem_edges (older, oracle, newer, score) "
                "SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[]) "
                "ON CONFLICT (older, oracle, newer) DO UPDATE SET score = excluded.score",
                tuple([row[n] for row in rows] for n in range(4)),
            )

    def conflicts(self, oracle: str, ids: Sequence[str]) -> dict[str, list[Conflict]]:
        """Returns an oracle's conflicts of the given older chunks, by the older chunk's id."""
        if not ids:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT older, newer, score FROM gcmem_edges "
                "WHERE older = ANY(%s) AND oracle = %s "
                'ORDER BY older, newer COLLATE "C"',
                (list(ids), oracle),
            ).fetchall()
        found: dict[str, list[Conflict]] = {}
        for older, newer, score in rows:
            conflict = Conflict(older=older, newer=newer, score=score, oracle=oracle)
            found.setdefault(older, []).append(conflict)
        return found

    def judged_up_to(self, oracle: str) -> int:
        """Returns the last sequence number that an oracle has judged."""
        with self._database.reading() as connection:
            return int(get_meta(connection, JUDGED + oracle) or 0)

    def set_judged_up_to(self, oracle: str, seq: int) -> None:
        """Keeps the last sequence number that an oracle has judged; if lost, it judges again."""
        with suppress(StoreError), unhurried_commit(self._database) as connection:
            set_meta(connection, JUDGED + oracle, str(seq))

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes the conflicts of these chunks, in the log's transaction."""
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM gcmem_edges WHERE older = ANY(%s) OR newer = ANY(%s)",
                (list(ids), list(ids)),
            )

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
