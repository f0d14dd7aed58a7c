"""Lexical search in PostgreSQL: BM25 in SQL, over the chunks that match the filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gcmem.indexed_text import lexical_text
from gcmem.ranking import ranked
from gcmem.storable import check_chunks
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.store.postgres.log import COLUMNS, chunk_of, conditions_of, get_meta, where_clause
from gcmem.types import Chunk, ChunkFilter
from gcmem.words import K1, B, asked_words, term_of, terms_of

MISSING = "words_missing"
BATCH = 1000
TIES = 16
"""Extra chunks that are fetched, because equal scores must come newest first."""


class PostgresWords:
    """Finds chunks by their words, with the scores of the embedded store."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._is_complete = False

    def read(self, chunks: Sequence[Chunk]) -> list[tuple[list[int], list[int], int]]:
        """Returns the words of each chunk as they are stored: hashes, counts, their sum."""
        check_chunks(chunks)  # before anything else looks at them
        return [_words_of(chunk) for chunk in chunks]

    def upsert(
        self, seqs: Sequence[int], words: Sequence[tuple[list[int], list[int], int]]
    ) -> None:
        """Writes the words into the log's database."""
        with self._database.transaction() as connection:
            copying = "COPY gcmem_words (seq, terms, counts, length) FROM STDIN"
            with connection.cursor().copy(copying) as copy:
                for seq, row in zip(seqs, words, strict=True):
                    copy.write_row((seq, *row))

    def delete(self, seqs: Sequence[int]) -> None:
        """Deletes words."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM gcmem_words WHERE seq = ANY(%s)", (list(seqs),))

    def rebuild(self) -> None:
        """Reads the words of every chunk again."""
        with self._database.transaction() as connection:
            connection.execute("SELECT FROM gcmem_sequence FOR UPDATE")
            connection.execute("TRUNCATE gcmem_words")
            connection.execute(
                "INSERT INTO gcmem_meta VALUES (%s, '1') ON CONFLICT DO NOTHING", (MISSING,)
            )
        self._is_complete = False
        self._complete()

    def _complete(self) -> None:
        """Reads the words of chunks that an older version stored."""
        if self._is_complete:
            return
        with self._database.reading() as connection:
            self._is_complete = get_meta(connection, MISSING) is None
        while not self._is_complete:
            with self._database.transaction() as connection:
                # The writers' lock: nobody else fills the same gap, or erases what is read here.
                connection.execute("SELECT FROM gcmem_sequence FOR UPDATE")
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM gcmem_chunks AS chunks WHERE NOT EXISTS "
                    "(SELECT FROM gcmem_words AS words WHERE words.seq = chunks.seq) "
                    f"ORDER BY seq LIMIT {BATCH}"
                ).fetchall()
                chunks = [chunk_of(row) for row in rows]
                self.upsert([chunk.seq or 0 for chunk in chunks], self.read(chunks))
                if len(rows) < BATCH:
                    connection.execute("DELETE FROM gcmem_meta WHERE key = %s", (MISSING,))
                    self._is_complete = True

    def search(self, question: str, *, k: int, where: ChunkFilter) -> list[tuple[str, float]]:
        """Returns the k best chunks with their scores; equal scores newest first."""
        self._complete()
        asked = Counter(map(term_of, asked_words(question)))
        conditions, values = conditions_of(where)
        matching = f"FROM gcmem_chunks JOIN gcmem_words USING (seq) {where_clause(conditions)}"
        hits = where_clause([*conditions, "terms && %s::int[]", "term = ANY(%s::int[])"])
        terms = [_signed(term) for term in asked]
        with self._database.reading() as connection:
            rows = connection.execute(
                "WITH matching AS (SELECT count(*) AS chunks, avg(length) AS average "
                f"{matching}), hit AS MATERIALIZED (SELECT seq, length, term, count "
                "FROM gcmem_chunks JOIN gcmem_words USING (seq), "
                f"unnest(terms, counts) AS posting (term, count) {hits}), "
                "weight AS (SELECT term, times * ln(1 + (max(chunks) - count(*) + 0.5) / "
                "(count(*) + 0.5))::float8 AS rarity FROM hit "
                "JOIN unnest(%s::int[], %s::float8[]) AS asked (term, times) USING (term) "
                "CROSS JOIN matching GROUP BY term, times) "
                "SELECT id, seq, score FROM (SELECT seq, sum(rarity * count * %s / (count + %s * "
                "(%s + %s * length / greatest(average, 1e-9)::float8)) ORDER BY term) AS score "
                "FROM hit JOIN weight USING (term) CROSS JOIN matching GROUP BY seq "
                "ORDER BY score DESC, seq DESC LIMIT %s) AS best "
                "JOIN gcmem_chunks USING (seq)",
                [
                    *values, *values, terms, terms, terms, list(map(float, asked.values())),
                    K1 + 1, K1, 1 - B, B, k + TIES,
                ],
            ).fetchall()  # fmt: skip
        order = ranked([row[2] for row in rows], [row[1] for row in rows])[:k]
        return [(rows[n][0], float(rows[n][2])) for n in order]


def _words_of(chunk: Chunk) -> tuple[list[int], list[int], int]:
    terms = terms_of(lexical_text(chunk))
    signed = terms["term"].astype(np.int32).tolist()
    return signed, terms["count"].tolist(), int(terms["count"].sum())


def _signed(term: int) -> int:
    """Returns a hash as PostgreSQL's integer, which has a sign."""
    return term - 2**32 if term >= 2**31 else term
