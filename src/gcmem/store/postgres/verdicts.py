"""The verdict cache in PostgreSQL: scores and conflict edges, in tables beside the log."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from gcmem.errors import StoreError
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.types import OPTION, Conflict

if TYPE_CHECKING:
    from psycopg import Connection

LINKED = "linked_up_to:"


class PostgresVerdicts:
    """Stores verdicts in the log's database.

    A verdict can always be computed again, so a write does not wait for the server's disk; if it
    fails, the verdict is dropped.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def get(
        self, oracle: str, question: str, pairs: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], float]:
        """Returns the known scores."""
        if not pairs:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT older, newer, score FROM gcmem_verdicts "
                "JOIN unnest(%s::text[], %s::text[]) AS wanted (older, newer) USING (older, newer) "
                "WHERE oracle = %s AND question = %s",
                ([a for a, _ in pairs], [b for _, b in pairs], oracle, _digest(question)),
            ).fetchall()
        return {(older, newer): score for older, newer, score in rows}

    def put(self, oracle: str, question: str, scores: Mapping[tuple[str, str], float]) -> None:
        """Stores scores, if the server can be reached."""
        with suppress(StoreError), self._writing() as connection:
            stored = _lock_stored(connection, {i for pair in scores for i in pair})
            # Sorted, so that all writers lock rows in the same order and can't deadlock.
            known = sorted(
                (pair, score)
                for pair, score in scores.items()
                if math.isfinite(score)
                and pair[0] in stored
                and (pair[1] in stored or pair[1].startswith(OPTION))
            )
            connection.execute(
                "INSERT INTO gcmem_verdicts SELECT older, newer, %s, %s, score "
                "FROM unnest(%s::text[], %s::text[], %s::float8[]) AS made (older, newer, score) "
                "ON CONFLICT (older, newer, oracle, question) DO UPDATE SET score = excluded.score",
                (
                    oracle,
                    _digest(question),
                    [pair[0] for pair, _ in known],
                    [pair[1] for pair, _ in known],
                    [score for _, score in known],
                ),
            )

    def link(self, conflicts: Sequence[Conflict]) -> None:
        """Stores conflicts as edges."""
        with suppress(StoreError), self._writing() as connection:
            stored = _lock_stored(connection, {i for c in conflicts for i in (c.older, c.newer)})
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

    def linked_up_to(self, oracle: str) -> int:
        """Returns the last sequence number an oracle has checked for conflicts."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT value FROM gcmem_meta WHERE key = %s", (LINKED + oracle,)
            ).fetchone()
        return int(row[0]) if row else 0

    def set_linked_up_to(self, oracle: str, seq: int) -> None:
        """Stores the last sequence number an oracle has checked; if lost, it checks again."""
        with suppress(StoreError), self._writing() as connection:
            connection.execute(
                "INSERT INTO gcmem_meta VALUES (%s, %s) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (LINKED + oracle, str(seq)),
            )

    def witnesses(self, oracle: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """Returns the newer chunks of the stored edges, by the older chunk's id."""
        if not ids:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT older, newer FROM gcmem_edges WHERE older = ANY(%s) AND oracle = %s "
                'ORDER BY older, newer COLLATE "C"',
                (list(ids), oracle),
            ).fetchall()
        found: dict[str, list[str]] = {}
        for older, newer in rows:
            found.setdefault(older, []).append(newer)
        return found

    def close(self) -> None:
        """Does nothing: the log closes the connections."""

    @contextmanager
    def _writing(self) -> Iterator[Connection[Any]]:
        with self._database.transaction() as connection:
            connection.execute("SET LOCAL synchronous_commit = off")
            yield connection


def _lock_stored(connection: Connection[Any], ids: set[str]) -> set[str]:
    """Returns the ids that are in the log, and locks them against deletion until the commit.

    Chunks that are being deleted right now are skipped: waiting for them could deadlock.
    """
    rows = connection.execute(
        "SELECT id FROM gcmem_chunks WHERE id = ANY(%s) FOR KEY SHARE SKIP LOCKED", (sorted(ids),)
    ).fetchall()
    return {row[0] for row in rows}


def _digest(question: str) -> bytes:
    return hashlib.blake2b(question.casefold().encode(), digest_size=8).digest()
