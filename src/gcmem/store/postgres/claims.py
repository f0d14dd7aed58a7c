"""The claims of chunks in PostgreSQL: a table beside the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gcmem.protocols import FoundClaim
from gcmem.store.paging import paged
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.store.postgres.log import COLUMNS, chunk_of, conditions_of, where_clause
from gcmem.types import ChunkFilter, Claim

HALF = np.dtype("<f2")
"""How vectors are stored, on whatever machine."""


class PostgresClaims:
    """Keeps claims in the log's database, each with the vector of its words."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def put(self, claims: Mapping[int, Sequence[FoundClaim]], *, detector: str) -> None:
        """Replaces the claims of chunks that are in the log."""
        if not claims:
            return
        # Not an unhurried commit: the chunks themselves may be part of the same transaction.
        with self._database.transaction() as connection:
            # As in lock_stored. Sorted, so that all writers lock rows in the same order and can't
            # deadlock.
            stored = connection.execute(
                "SELECT seq FROM gcmem_chunks WHERE seq = ANY(%s) FOR KEY SHARE SKIP LOCKED",
                (list(claims),),
            ).fetchall()
            rows = [_row(seq, detector, claims[seq]) for (seq,) in sorted(stored)]
            connection.cursor().executemany(
                "INSERT INTO gcmem_claims (seq, detector, firsts, lasts, vectors) "
                "VALUES (%s, %s, %s::integer[], %s::integer[], %s::bytea[]) "
                "ON CONFLICT (seq) DO UPDATE SET detector = excluded.detector, "
                "firsts = excluded.firsts, lasts = excluded.lasts, vectors = excluded.vectors",
                rows,
            )

    def get(self, seqs: Sequence[int], *, detector: str) -> dict[int, list[FoundClaim]]:
        """Returns the claims of the chunks that this detector has read."""
        if not seqs:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT seq, firsts, lasts, vectors FROM gcmem_claims "
                "WHERE seq = ANY(%s) AND detector = %s ORDER BY seq",
                (list(seqs), detector),
                binary=True,
            ).fetchall()
        return {
            seq: [
                FoundClaim((first, last), np.frombuffer(data, dtype=HALF).astype(np.float32))
                for first, last, data in zip(firsts, lasts, vectors, strict=True)
            ]
            for seq, firsts, lasts, vectors in rows
        }

    def scan(self, where: ChunkFilter, *, detector: str, after: Claim | None) -> Iterator[Claim]:
        """Yields the claims of matching chunks, newest first; holds no connection between pages."""
        conditions, values = conditions_of(where)
        conditions += ["detector = %s", "firsts <> '{}'"]
        values.append(detector)
        if after is not None:
            # By its own place, since its chunk may have been forgotten meanwhile.
            conditions.append("(at, seq) <= (%s, %s)")
            values += [after.chunk.at, after.chunk.seq]

        def read(last: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
            more = ["(at, seq) < (%s, %s)"] if last else []
            with self._database.reading() as connection:
                rows: list[tuple[Any, ...]] = connection.execute(
                    f"SELECT {COLUMNS}, firsts, lasts FROM gcmem_chunks "
                    f"JOIN gcmem_claims USING (seq) {where_clause([*conditions, *more])} "
                    f"ORDER BY at DESC, seq DESC LIMIT {size}",
                    [*values, *last],
                ).fetchall()
            return rows

        for row in paged(read, by_time=True, limit=None):
            *columns, firsts, lasts = row
            chunk = chunk_of(tuple(columns))
            for span in reversed(list(zip(firsts, lasts, strict=True))):
                if after is None or chunk.seq != after.chunk.seq or span < after.span:
                    yield Claim(chunk=chunk, span=span)

    def forget(self, seqs: Sequence[int]) -> None:
        """Deletes the claims of these chunks, in the log's transaction."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM gcmem_claims WHERE seq = ANY(%s)", (list(seqs),))


def _row(seq: int, detector: str, found: Sequence[FoundClaim]) -> tuple[Any, ...]:
    """Returns a chunk's columns; its claims are sorted by their place in the text."""
    claims = sorted(found, key=lambda claim: claim.span)
    return (
        seq,
        detector,
        [claim.span[0] for claim in claims],
        [claim.span[1] for claim in claims],
        [claim.vector.astype(HALF).tobytes() for claim in claims],
    )
