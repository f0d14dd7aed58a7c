"""Lexical search in the embedded store: BM25 over posting lists in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcmem.indexed_text import lexical_text
from gcmem.ranking import ranked
from gcmem.storable import check_chunks
from gcmem.store.frontier import ROUNDING
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

Floats = NDArray[np.float32]


class Postings(NamedTuple):
    """Which rows have which words, and how often: three columns of equal length."""

    terms: NDArray[np.uint32]
    rows: NDArray[np.uint32]
    counts: Floats

    def select(self, which: Any) -> Postings:
        """Returns some of the postings."""
        return Postings(self.terms[which], self.rows[which], self.counts[which])


NO_POSTINGS = Postings(
    np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.float32)
)


def _joined(several: Sequence[Postings]) -> Postings:
    return Postings(*(np.concatenate(column) for column in zip(*several, strict=True)))


class WordsView(NamedTuple):
    """Postings sorted by term and row, those of the newest rows, and the rows' lengths."""

    sorted: Postings
    unsorted: Postings
    lengths: Floats


class WordPart:
    """The words of the loaded rows."""

    table, column, is_required = "words", "terms", False

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drops everything."""
        self._sorted = NO_POSTINGS
        self._unsorted: list[Postings] = []
        self._unsorted_size = 0
        self._lengths = np.empty(0, dtype=np.float32)

    def prepare(self, blobs: Sequence[bytes | None]) -> tuple[Postings, Floats]:
        """Returns the postings of further rows, counted from 0, and the rows' lengths."""
        given = [blob or b"" for blob in blobs]
        words = np.frombuffer(b"".join(given), dtype=TERM)
        sizes = [len(blob) // TERM.itemsize for blob in given]
        rows = np.repeat(np.arange(len(given), dtype=np.uint32), sizes)
        counts = words["count"].astype(np.float32)
        lengths = np.bincount(rows, weights=counts, minlength=len(given)).astype(np.float32)
        return Postings(words["term"].copy(), rows, counts), lengths

    def extend(self, prepared: tuple[Postings, Floats]) -> None:
        """Adds postings of further rows."""
        postings, lengths = prepared
        start = np.uint32(len(self._lengths))
        self._lengths = np.concatenate([self._lengths, lengths])
        self._unsorted.append(postings._replace(rows=postings.rows + start))
        self._unsorted_size += len(postings.rows)

    def erase(self, rows: Ints) -> None:
        """Drops the postings of rows."""
        self._merge()
        self._sorted = self._sorted.select(~np.isin(self._sorted.rows, rows))
        self._lengths = self._lengths.copy()
        self._lengths[rows] = 0

    def view(self, size: int) -> WordsView:
        """Returns the postings; sorts first if many are unsorted."""
        if self._unsorted_size > max(SORT_ABOVE, len(self._sorted.rows) // 4):
            self._merge()
        elif len(self._unsorted) > 1:
            self._unsorted = [_joined(self._unsorted)]
        unsorted = self._unsorted[0] if self._unsorted else NO_POSTINGS
        return WordsView(self._sorted, unsorted, self._lengths[:size])

    def _merge(self) -> None:
        together = _joined([self._sorted, *self._unsorted])
        self._sorted = together.select(np.argsort(together.terms, kind="stable"))
        self._unsorted, self._unsorted_size = [], 0


class SQLiteWords:
    """Finds chunks by their words. The statistics are those of the chunks that match the filter,
    so that one user's words never change what another user finds."""

    def __init__(self, log: SQLiteLog, rows: LoadedRows) -> None:
        """`rows` must have a `WordPart`."""
        self._log = log
        self._rows = rows
        self._is_complete = False

    def read(self, chunks: Sequence[Chunk]) -> list[bytes]:
        """Returns the words of each chunk as they are stored."""
        check_chunks(chunks)  # before anything else looks at them
        return [terms_of(lexical_text(chunk)).tobytes() for chunk in chunks]

    def upsert(self, seqs: Sequence[int], words: Sequence[bytes]) -> None:
        """Writes the words into the log's file."""
        with self._log.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO words VALUES (?,?)", list(zip(seqs, words, strict=True))
            )

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
                chunks = [chunk_of(row) for row in rows]
                self.upsert([chunk.seq or 0 for chunk in chunks], self.read(chunks))
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
        found = np.nonzero(scores)[0]
        if len(found) > k:
            least = np.partition(scores[found], -k)[-k]
            found = found[scores[found] >= least - ROUNDING]
        order = ranked(scores[found], rows.columns[0][matching[found]])[:k]
        best = found[order]
        return [(rows.ids[matching[n]], float(scores[n])) for n in best]


def _bm25(view: WordsView, asked: Counter[int], matching: Ints) -> NDArray[np.float64]:
    """Returns the score of every matching row; rows without any of the words score 0."""
    scores = np.zeros(len(matching))
    lengths = view.lengths[matching]
    # What a count is divided by, besides itself.
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9))
    place = _Places(matching, size=len(view.lengths))
    for term, times in sorted(asked.items()):
        start, end = np.searchsorted(view.sorted.terms, [term, term + 1])
        newest = view.unsorted.terms == term
        parts = [
            place.of(view.sorted.rows[start:end], view.sorted.counts[start:end]),
            place.of(view.unsorted.rows[newest], view.unsorted.counts[newest]),
        ]
        positions = np.concatenate([found for found, _ in parts])
        if not len(positions):
            continue
        counts = np.concatenate([count for _, count in parts])
        rarity = np.log1p((len(matching) - len(positions) + 0.5) / (len(positions) + 0.5))
        scores[positions] += times * rarity * counts * (K1 + 1) / (counts + norm[positions])
    return scores


class _Places:
    """Where rows are among the matching ones."""

    def __init__(self, matching: Ints, *, size: int) -> None:
        self._matching = matching
        self._size = size
        self._place: Ints | None = None

    def of(self, rows: NDArray[np.uint32], counts: Floats) -> tuple[Ints, Floats]:
        """Returns the positions of those rows that match, and their counts; `rows` is sorted."""
        if len(rows) and rows[-1] >= self._size:  # added after the view was made
            known = np.searchsorted(rows, self._size)
            rows, counts = rows[:known], counts[:known]
        if len(self._matching) == self._size:
            return rows.astype(np.int64), counts
        if len(self._matching) * 8 < len(rows):
            at = np.minimum(np.searchsorted(rows, self._matching), len(rows) - 1)
            positions = np.nonzero(rows[at] == self._matching)[0]
            return positions, counts[at[positions]]
        if self._place is None:
            self._place = np.full(self._size, -1)
            self._place[self._matching] = np.arange(len(self._matching))
        positions = self._place[rows]
        return positions[positions >= 0], counts[positions >= 0]
