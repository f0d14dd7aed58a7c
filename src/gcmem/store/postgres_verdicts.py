"""The verdict cache in PostgreSQL: scores and conflict edges, in tables beside the log."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from gcmem.errors import StoreError
from gcmem.store.postgres_connection import PostgresDatabase
from gcmem.types import Conflict

LINKED = "linked_up_to:"


class PostgresVerdicts:
    """Keeps scores in the log's database.

    A verdict can always be made again: writing one does not wait for the server's disk, and if it
    can't be kept, it is simply not kept.
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
        """Keeps scores, if the server can be reached."""
        # In one order everywhere: two writers that lock rows crosswise would stop each other.
        known = sorted((pair, score) for pair, score in scores.items() if math.isfinite(score))
        self._write(
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
        """Keeps conflicts as edges."""
        edges = {(c.older, c.oracle, c.newer): c.score for c in conflicts}
        rows = [(*key, score) for key, score in sorted(edges.items())]
        self._write(
            "INSERT INTO gcmem_edges (older, oracle, newer, score) "
            "SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[]) "
            "ON CONFLICT (older, oracle, newer) DO UPDATE SET score = excluded.score",
            tuple([row[n] for row in rows] for n in range(4)),
        )

    def linked_up_to(self, oracle: str) -> int:
        """Returns the sequence number up to which an oracle has linked the chunks."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT value FROM gcmem_meta WHERE key = %s", (LINKED + oracle,)
            ).fetchone()
        return int(row[0]) if row else 0

    def set_linked_up_to(self, oracle: str, seq: int) -> None:
        """Keeps how far an oracle has come; lost, the chunks behind it are judged once more."""
        self._write(
            "INSERT INTO gcmem_meta VALUES (%s, %s) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (LINKED + oracle, str(seq)),
        )

    def witnesses(self, oracle: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """Returns the newer ends of the known edges of the given chunks."""
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
        """Does nothing: the connections are the log's."""

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with suppress(StoreError), self._database.transaction() as connection:
            connection.execute("SET LOCAL synchronous_commit = off")
            connection.execute(statement, values)


def _digest(question: str) -> bytes:
    return hashlib.blake2b(question.casefold().encode(), digest_size=8).digest()
