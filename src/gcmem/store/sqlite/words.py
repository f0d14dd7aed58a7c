"""Lexical search in the embedded store: BM25 over posting lists in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcmem.indexed_text import lexical_text
from gcmem.ranking import ranked
from gcmem.store.sqlite.file import get_meta, next_generation
from gcmem.store.sqlite.loaded_rows import Ints, LoadedRows
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.store.sqlite.rows import COLUMNS, chunk_of
from gcmem.types import Chunk, ChunkFilter
from gcmem.words import K1, TERM, B, asked_words, term_of, terms_of

MISSING = "words_missing"
BATCH = 1000
SORT_ABOVE = 20_000
"""Unsorted postings are searched one by one; above this number, or a quarter, they are sorted."""

POSTING = np.dtype([("term", "<u4"), ("row", "<u4"), ("count", "<u2")])
Postings = NDArray[np.void]


class WordsView(NamedTuple):
    """Postings sorted by term, postings of the newest rows, and the number of words per row."""

    sorted: Postings
    unsorted: Postings
    lengths: NDArray[np.float32]


class WordPart:
    """The words of the loaded rows."""

    table, column, is_required = "words", "terms", False

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drops everything."""
        self._sorted = np.empty(0, dtype=POSTING)
        self._unsorted: list[Postings] = []
        self._unsorted_size = 0
        self._lengths = np.empty(0, dtype=np.float32)

    def prepare(self, blobs: Sequence[bytes | None]) -> tuple[Postings, NDArray[np.float32]]:
        """Returns the postings of further rows, counted from 0, and the rows' lengths."""
        given = [blob or b"" for blob in blobs]
        terms = np.frombuffer(b"".join(given), dtype=TERM)
        sizes = [len(blob) // TERM.itemsize for blob in given]
        postings = np.empty(len(terms), dtype=POSTING)
        postings["term"], postings["count"] = terms["term"], terms["count"]
        postings["row"] = np.repeat(np.arange(len(given), dtype=np.uint32), sizes)
        lengths = np.bincount(postings["row"], weights=terms["count"], minlength=len(given))
        return postings, lengths.astype(np.float32)

    def extend(self, prepared: tuple[Postings, NDArray[np.float32]]) -> None:
        """Adds postings of further rows."""
        postings, lengths = prepared
        postings["row"] += len(self._lengths)
        self._lengths = np.concatenate([self._lengths, lengths])
        self._unsorted.append(postings)
        self._unsorted_size += len(postings)

    def erase(self, rows: Ints) -> None:
        """Drops the postings of rows."""
        self._merge()
        self._sorted = self._sorted[~np.isin(self._sorted["row"], rows)]
        self._lengths = self._lengths.copy()
        self._lengths[rows] = 0

    def view(self, size: int) -> WordsView:
        """Returns the postings; sorts first if many are unsorted."""
        if self._unsorted_size > max(SORT_ABOVE, len(self._sorted) // 4):
            self._merge()
        elif len(self._unsorted) > 1:
            self._unsorted = [np.concatenate(self._unsorted)]
        unsorted = self._unsorted[0] if self._unsorted else np.empty(0, dtype=POSTING)
        return WordsView(self._sorted, unsorted, self._lengths[:size])

    def _merge(self) -> None:
        together = np.concatenate([self._sorted, *self._unsorted])
        self._sorted = together[np.argsort(together["term"], kind="stable")]
        self._unsorted, self._unsorted_size = [], 0


class SQLiteWords:
    """Finds chunks by their words. The statistics are those of the chunks that match the filter,
    so that one user's words never change what another user finds."""

    def __init__(self, log: SQLiteLog, rows: LoadedRows) -> None:
        """`rows` must have a `WordPart`."""
        self._log = log
        self._rows = rows
        self._is_complete = False

    def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Writes the words into the log's file."""
        blobs = [(c.seq, terms_of(lexical_text(c)).tobytes()) for c in chunks]
        with self._log.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO words VALUES (?,?)", blobs)

    def delete(self, seqs: Sequence[int]) -> None:
        """Deletes words."""
        with self._log.writing() as connection:
            connection.executemany("DELETE FROM words WHERE seq = ?", [(seq,) for seq in seqs])

    def rebuild(self) -> None:
        """Reads the words of every chunk again."""
        with self._log.writing() as connection:
            connection.execute("DELETE FROM words")
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (MISSING,))
        self._is_complete = False
        self._complete()

    def _complete(self) -> None:
        """Reads the words of chunks that an older version stored."""
        if self._is_complete or self._log.file.read_only:
            return
        with self._log.reading() as connection:
            self._is_complete = get_meta(connection, MISSING) is None
        while not self._is_complete:
            with self._log.writing() as connection:
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM chunks WHERE seq NOT IN (SELECT seq FROM words) "
                    f"ORDER BY seq LIMIT {BATCH}"
                ).fetchall()
                self.upsert([chunk_of(row) for row in rows])
                if len(rows) < BATCH:
                    connection.execute("DELETE FROM meta WHERE key = ?", (MISSING,))
                    next_generation(connection)
                    self._is_complete = True

    def search(self, question: str, *, k: int, where: ChunkFilter) -> list[tuple[str, float]]:
        """Returns the k best chunks with their scores; equal scores newest first."""
        self._complete()
        rows = self._rows.sync(where.scope)
        matching, _ = self._rows.select(rows, where)
        if not matching.size:
            return []
        terms = Counter(map(term_of, asked_words(question)))
        scores = _bm25(rows.parts["words"], terms, matching)
        found = matching[scores[matching] > 0]
        if len(found) > k:
            least = np.partition(scores[found], -k)[-k]
            found = found[scores[found] >= least]
        order = ranked(scores[found], rows.columns[0][found])[:k]
        return [(rows.ids[found[n]], float(scores[found[n]])) for n in order]


def _bm25(view: WordsView, terms: Counter[int], matching: Ints) -> NDArray[np.float64]:
    """Returns the score of every row; rows that don't match score 0."""
    size = len(view.lengths)
    scores = np.zeros(size)
    is_matching = None
    if len(matching) < size:
        is_matching = np.zeros(size, dtype=bool)
        is_matching[matching] = True
    average = max(float(view.lengths[matching].mean()), 1e-9)
    for term, times in terms.items():
        start, end = np.searchsorted(view.sorted["term"], [term, term + 1])
        postings = view.sorted[start:end]
        newest = view.unsorted[view.unsorted["term"] == term]
        if len(newest):
            postings = np.concatenate([postings, newest])
        postings = postings[postings["row"] < size]
        if is_matching is not None:
            postings = postings[is_matching[postings["row"]]]
        if not len(postings):
            continue
        rarity = np.log1p((len(matching) - len(postings) + 0.5) / (len(postings) + 0.5))
        count, length = postings["count"].astype(np.float64), view.lengths[postings["row"]]
        scores[postings["row"]] += (
            times * rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * length / average))
        )
    return scores
