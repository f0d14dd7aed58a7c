"""The claims of chunks, in the log's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gcmem.protocols import FoundClaim
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.store.sqlite.rows import COLUMNS, chunk_of, conditions_of, to_micros, where_clause
from gcmem.store.sqlite.side_connection import PAGE
from gcmem.types import ChunkFilter, Claim


class SQLiteClaims:
    """Keeps claims beside the log, each with the vector of its words."""

    def __init__(self, log: SQLiteLog) -> None:
        self._log = log

    def put(self, claims: Mapping[int, Sequence[FoundClaim]], *, detector: str) -> None:
        """Replaces the claims of chunks that are in the log."""
        with self._log.writing() as connection:
            for seq, found in claims.items():
                connection.execute("DELETE FROM claims WHERE seq = ?", (seq,))
                rows: list[tuple[Any, ...]] = [
                    (seq, *claim.span, detector, claim.vector.astype(np.float16).tobytes())
                    for claim in found
                ]
                connection.executemany(
                    "INSERT INTO claims SELECT ?1, ?2, ?3, ?4, ?5 "
                    "WHERE EXISTS (SELECT 1 FROM chunks WHERE seq = ?1)",
                    rows or [(seq, None, None, detector, b"")],
                )

    def get(self, seqs: Sequence[int], *, detector: str) -> dict[int, list[FoundClaim]]:
        """Returns the claims of the chunks that this detector has read."""
        found: dict[int, list[FoundClaim]] = {}
        for start in range(0, len(seqs), PAGE):
            page = list(seqs[start : start + PAGE])
            with self._log.reading() as connection:
                rows = connection.execute(
                    f"SELECT seq, first, last, vector FROM claims WHERE seq IN "
                    f"({','.join('?' * len(page))}) AND detector = ? ORDER BY seq, first",
                    [*page, detector],
                ).fetchall()
            for seq, first, last, vector in rows:
                claims = found.setdefault(seq, [])
                if first is not None:
                    numbers = np.frombuffer(vector, dtype=np.float16).astype(np.float32)
                    claims.append(FoundClaim((first, last), numbers))
        return found

    def scan(self, where: ChunkFilter, *, detector: str, after: Claim | None) -> Iterator[Claim]:
        """Yields the claims of matching chunks, newest first, page by page."""
        conditions, values = conditions_of(where)
        conditions += ["first IS NOT NULL", "detector = ?"]
        values.append(detector)
        while True:
            more: list[str] = []
            place: list[int] = []
            if after is not None:
                assert after.chunk.at is not None
                more = ["(at, seq, first, last) < (?, ?, ?, ?)"]
                place = [to_micros(after.chunk.at), after.chunk.seq or 0, *after.span]
            with self._log.reading() as connection:
                rows = connection.execute(
                    f"SELECT {COLUMNS}, first, last FROM chunks JOIN claims USING (seq) "
                    f"{where_clause([*conditions, *more])} "
                    f"ORDER BY at DESC, seq DESC, first DESC, last DESC LIMIT {PAGE}",
                    [*values, *place],
                ).fetchall()
            for row in rows:
                after = Claim(chunk=chunk_of(row[:-2]), span=(row[-2], row[-1]))
                yield after
            if len(rows) < PAGE:
                return

    def forget(self, seqs: Sequence[int]) -> None:
        """Deletes the claims of these chunks, in the log's transaction."""
        with self._log.writing() as connection:
            connection.executemany("DELETE FROM claims WHERE seq = ?", [(seq,) for seq in seqs])
