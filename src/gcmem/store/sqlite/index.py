"""The embedded MTM: exact cosine over one NumPy matrix, loaded from the log on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gcmem.errors import EncoderMismatchError, IndexElsewhereError, StoreCorruptError
from gcmem.protocols import Encoder, LogState, Progress, Vectors
from gcmem.ranking import ranked
from gcmem.store.frontier import ROUNDING, frontier_positions
from gcmem.store.sqlite.loaded_rows import Ints, LoadedRows, View
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.store.sqlite.vectors import SQLiteVectors, stored_vector
from gcmem.types import Chunk, ChunkFilter
from gcmem.vectors import are_unit, checked, is_usable

GATHER_BELOW = 0.3
"""Below this share of matching rows, copying them out is cheaper than scoring all rows."""


class VectorPart:
    """The vectors of the loaded rows, as one matrix."""

    table, column, is_required = "vectors", "vector", True

    def __init__(self, *, dimensions: int, location: str) -> None:
        self._dimensions = dimensions
        self._location = location
        self.reset()

    def reset(self) -> None:
        """Drops everything."""
        self._size = 0
        self._matrix = np.empty((0, self._dimensions), dtype=np.float32)

    def prepare(self, blobs: Sequence[bytes | None]) -> Vectors:
        """Returns vectors as one matrix; raises if some can't be searched."""
        given = [blob or b"" for blob in blobs]
        block = np.empty((0, self._dimensions), dtype=np.float32)
        if all(len(blob) == self._dimensions * block.itemsize for blob in given):
            block = np.frombuffer(b"".join(given), dtype=np.float32)
            block = block.reshape(len(given), self._dimensions)
            if are_unit(block).all():
                return block
        self.check_usable(stored_vector(blob) for blob in given)
        return block

    def check_usable(self, vectors: Iterable[Vectors]) -> None:
        """Raises an error with the number of vectors that can't be searched, if any."""
        usable = [is_usable(vector, dimensions=self._dimensions) for vector in vectors]
        if not all(usable):
            raise StoreCorruptError(
                f"{usable.count(False)} of {len(usable)} vectors read from {self._location} "
                "have the wrong length or are not finite; re-embed the store: gcmem reindex --path "
                f"{self._location}"
            )

    def extend(self, prepared: Vectors) -> None:
        """Adds vectors as further rows."""
        end = self._size + len(prepared)
        if end > len(self._matrix):
            room = max(end, len(self._matrix) * 5 // 4)
            matrix = np.empty((room, self._dimensions), dtype=np.float32)
            matrix[: self._size] = self._matrix[: self._size]
            self._matrix = matrix
        self._matrix[self._size : end] = prepared
        self._size = end

    def erase(self, rows: Ints) -> None:
        """Overwrites rows. A search may be reading them, but finds no such chunk in the log."""
        self._matrix[rows] = 0

    def view(self, size: int) -> Vectors:
        """Returns the first `size` rows."""
        return self._matrix[:size]


class NumpyIndex:
    """Exact search over the rows in memory."""

    shares_log = True

    def __init__(
        self,
        log: SQLiteLog,
        *,
        encoder_id: str,
        dimensions: int,
        parts: Sequence[Any] = (),
    ) -> None:
        """`parts` are what other indexes hold of the same rows; see `open_embedded`."""
        self._log = log
        self._stored = SQLiteVectors(log)
        self._encoder_id = encoder_id
        self._part = VectorPart(dimensions=dimensions, location=log.location)
        self.rows = LoadedRows(log, [self._part, *parts])

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None before the first chunk."""
        return self._stored.encoder_id

    @property
    def text_version(self) -> int:
        """How the embedded texts were made."""
        return self._stored.text_version

    def hand_over(self) -> None:
        """Drops the vectors, because another index takes over."""
        self._stored.hand_over()
        self.rows.remove("vectors")

    def check(self, vectors: Vectors, *, count: int, encoder_id: str) -> Vectors:
        """Returns the vectors as they will be stored; raises if they can't be searched."""
        return checked(vectors, count=count, encoder_id=encoder_id)

    def upsert(self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str) -> None:
        """Writes the vectors into the log's file; the next search loads them."""
        self._stored.insert([c.seq or 0 for c in chunks], vectors, encoder_id=encoder_id)

    def delete(self, seqs: Sequence[int]) -> None:
        """Deletes the vectors; the loaded rows go when the transaction ends."""
        self._stored.delete(seqs)

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""
        return self._stored.get(ids)

    def state(self) -> LogState:
        """Returns the log's state: both are written in one transaction."""
        return self._log.state()

    def rebuild(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Embeds every chunk beside the old vectors and swaps them at the end."""
        return self._stored.rebuild(encoder, progress=progress)

    def close(self) -> None:
        """Drops the loaded rows; the file is the log's."""
        self.rows.reset()

    def _check_encoder(self) -> None:
        """Raises if another process re-embedded the store with a different encoder."""
        stored = self.encoder_id
        if stored is None and self._stored.is_elsewhere:
            raise IndexElsewhereError(self._log.location)
        if stored is not None and stored != self._encoder_id:
            raise EncoderMismatchError(
                stored=stored, given=self._encoder_id, location=self._log.location
            )

    def search(
        self,
        queries: Vectors,
        *,
        k: int,
        where: ChunkFilter,
        frontier: int = 0,
        beyond: int | None = None,
    ) -> list[list[tuple[str, float]]]:
        """Returns, for each query, the k most similar chunks; equal scores newest first.

        With `frontier`, the chunks on the frontier follow, newest first, without the `beyond` most
        similar.
        """
        self._check_encoder()
        rows = self.rows.sync(where.scope)
        vectors: Vectors = rows.parts["vectors"]
        matching, newest_first = self.rows.select(rows, where)
        if matching.size == 0:
            return [[] for _ in queries]
        if matching.size < GATHER_BELOW * len(vectors):
            scores = queries @ vectors[matching].T
        else:
            # In this order, BLAS reads the large matrix only once, row by row.
            scores = np.ascontiguousarray((vectors @ queries.T).T)
            scores = scores if matching.size == len(vectors) else scores[:, matching]
        results = []
        for query, row_scores in zip(queries, scores, strict=True):
            hits = _best(rows, query, row_scores, matching, k)
            if frontier:
                picked = newest_first[frontier_positions(row_scores[newest_first], frontier)]
                known = {row for row, _ in hits[:beyond]}
                hits += [
                    (int(matching[i]), float(row_scores[i]))
                    for i in picked
                    if int(matching[i]) not in known
                ]
            results.append([(rows.ids[row], score) for row, score in hits])
        return results

    def score(self, queries: Vectors, ids: Sequence[str]) -> Vectors:
        """Returns the cosine of every query to every id; an unknown id scores 0."""
        rows = self.rows.view()
        vectors: Vectors = rows.parts["vectors"]
        size = rows.size  # row_of may already list rows that were added later
        known = {i: n for i in ids if (n := rows.row_of.get(i, size)) < size}
        # Vectors that are not loaded are read from the log.
        missing = self._stored.get([i for i in ids if i not in known])
        self._part.check_usable(missing.values())
        scores = np.zeros((len(queries), len(ids)), dtype=np.float32)
        for column, chunk_id in enumerate(ids):
            vector = vectors[known[chunk_id]] if chunk_id in known else missing.get(chunk_id)
            if vector is not None:
                scores[:, column] = (queries * vector).sum(axis=1)
        return scores


def _best(
    rows: View, query: Vectors, scores: Vectors, numbers: Ints, wanted: int
) -> list[tuple[int, float]]:
    """Returns the row numbers of the most similar chunks, with their exact cosine."""
    wanted = min(wanted, len(scores))
    if wanted == 0:
        return []
    least = np.partition(scores, -wanted)[-wanted] - ROUNDING
    best = numbers[scores >= least]
    # Summed again row by row: a matrix product may round equal vectors differently.
    exact = (rows.parts["vectors"][best] * query).sum(axis=1)
    order = ranked(exact, rows.columns[0][best])[:wanted]
    return [(int(best[i]), float(exact[i])) for i in order]
