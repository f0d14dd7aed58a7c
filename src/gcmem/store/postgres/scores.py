"""The score cache in PostgreSQL: a table beside the log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

from gcmem.errors import StoreError
from gcmem.protocols import ScoreKey
from gcmem.store.digests import question_digest
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.store.postgres.ledger import lock_stored, unhurried_commit


class PostgresScores:
    """Keeps scores in the log's database.

    A score can always be computed again, so a write does not wait for the server's disk; if it
    fails, the score is dropped.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def get(self, key: ScoreKey, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Returns the known scores."""
        if not pairs:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT first, second, score FROM gcmem_scores "
                "JOIN unnest(%s::text[], %s::text[]) AS wanted (first, second) "
                "USING (first, second) WHERE kind = %s AND scorer = %s AND question = %s",
                (
                    [a for a, _ in pairs],
                    [b for _, b in pairs],
                    key.kind,
                    key.scorer,
                    question_digest(key.question),
                ),
            ).fetchall()
        return {(first, second): score for first, second, score in rows}

    def put(self, key: ScoreKey, scores: Mapping[tuple[str, str], float]) -> None:
        """Keeps scores, if the server can be reached."""
        with suppress(StoreError), unhurried_commit(self._database) as connection:
            stored = lock_stored(connection, {i for pair in scores for i in pair})
            # Sorted, so that all writers lock rows in the same order and can't deadlock.
            known = sorted(
                (pair, score)
                for pair, score in scores.items()
                if math.isfinite(score)
                and pair[0] in stored
                and (key.kind == "stance" or pair[1] in stored)
            )
            connection.execute(
                "INSERT INTO gcmem_scores SELECT first, second, %s, %s, %s, score "
                "FROM unnest(%s::text[], %s::text[], %s::float8[]) AS made (first, second, score) "
                "ON CONFLICT (first, second, kind, scorer, question) "
                "DO UPDATE SET score = excluded.score",
                (
                    key.kind,
                    key.scorer,
                    question_digest(key.question),
                    [pair[0] for pair, _ in known],
                    [pair[1] for pair, _ in known],
                    [score for _, score in known],
                ),
            )

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes the scores of these chunks, in the log's transaction."""
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM gcmem_scores "
                "WHERE first = ANY(%s) OR (second = ANY(%s) AND kind <> 'stance')",
                (list(ids), list(ids)),
            )

    def close(self) -> None:
        """Does nothing: the log closes the connections."""
