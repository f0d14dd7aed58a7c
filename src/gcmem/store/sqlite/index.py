"""The embedded MTM: exact cosine over one NumPy matrix, loaded from the log on demand."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gcmem.errors import EncoderMismatchError, StoreCorruptError
from gcmem.protocols import Encoder, LogState, Progress, Vectors
from gcmem.ranking import ranked
from gcmem.store.frontier import ROUNDING, frontier_positions
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.store.sqlite.rows import make_scope, to_micros
from gcmem.store.sqlite.vectors import SQLiteVectors, VectorRow, VectorState, stored_vector
from gcmem.types import Chunk, ChunkFilter, Scope
from gcmem.vectors import are_unit, checked, is_usable

Ints = np.ndarray[Any, np.dtype[np.int64]]

GATHER_BELOW = 0.3
"""Below this share of matching rows, copying them out is cheaper than scoring all rows."""
EVERYTHING = ChunkFilter()
SCOPES_KEPT = 256
"""Number of scopes whose row selection is cached between searches."""


class _Rows:
    """Growing columns: one row per chunk, in the order in which rows were loaded."""

    def __init__(self, dimensions: int) -> None:
        self.size = 0
        self.ids: list[str] = []
        self.scopes: list[Scope] = []
        self.scope_numbers: dict[tuple[str | None, str | None, str | None], int] = {}
        self.row_of: dict[str, int] = {}
        self.vectors = np.empty((0, dimensions), dtype=np.float32)
        # seq, scope, at, recorded_at; a row whose seq is 0 was erased.
        self.columns = np.empty((4, 0), dtype=np.int64)

    def extend(self, rows: list[VectorRow], block: Vectors) -> None:
        if not rows:
            return
        end = self.size + len(rows)
        if end > self.vectors.shape[0]:
            room = max(end, self.vectors.shape[0] * 5 // 4)
            vectors = np.empty((room, self.vectors.shape[1]), dtype=np.float32)
            vectors[: self.size] = self.vectors[: self.size]
            columns = np.zeros((4, room), dtype=np.int64)
            columns[:, : self.size] = self.columns[:, : self.size]
            self.vectors, self.columns = vectors, columns
        self.vectors[self.size : end] = block
        for row in rows:
            if row.scope not in self.scope_numbers:
                self.scope_numbers[row.scope] = len(self.scopes)
                self.scopes.append(make_scope(*row.scope))
        self.columns[:, self.size : end] = np.array(
            [(r.seq, self.scope_numbers[r.scope], r.at, r.recorded_at) for r in rows]
        ).T
        self.row_of.update((row.id, n) for n, row in enumerate(rows, self.size))
        self.ids.extend(row.id for row in rows)
        self.size = end

    def view(self) -> _View:
        """Returns the current rows without copying; later, rows in it can only be erased."""
        return _View(
            ids=self.ids,
            scopes=self.scopes,
            row_of=self.row_of,
            vectors=self.vectors[: self.size],
            columns=self.columns[:, : self.size],
        )

    def erase(self, seqs: list[int]) -> None:
        rows = np.nonzero(np.isin(self.columns[0, : self.size], seqs))[0]
        if rows.size:
            self.columns = self.columns.copy()  # searches may be reading the old one
            self.columns[0, rows] = 0
            # Searches may be reading these too; a hit on an erased row is not in the log any more.
            self.vectors[rows] = 0
            for row in rows:
                self.row_of.pop(self.ids[row], None)
                self.ids[row] = ""


class _View(NamedTuple):
    """The rows at one moment; rows added later are not part of it."""

    ids: list[str]
    scopes: list[Scope]
    row_of: dict[str, int]
    vectors: Vectors
    columns: Ints


class NumpyIndex:
    """Exact search; loads a scope at its first search, and everything if no scope is given."""

    shares_log = True

    def __init__(self, log: SQLiteLog, *, encoder_id: str, dimensions: int) -> None:
        self._log = log
        self._stored = SQLiteVectors(log)
        self._encoder_id = encoder_id
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._reset()
        log.when_erased(self._drop_erased)

    def _reset(self) -> None:
        self._rows = _Rows(self._dimensions)
        self._ordered: tuple[Ints, int, Ints] | None = None
        self._selected: dict[Scope, tuple[Ints, int, Ints, Ints]] = {}
        self._loaded: list[Scope] = []
        self._state = VectorState()

    def _drop_erased(self) -> None:
        """Drops vectors as soon as their chunks are forgotten, not only at the next search."""
        with self._lock:
            if self._loaded:
                self._drop_up_to(self._log.state().last_erasure)

    def _drop_up_to(self, erasure: int) -> None:
        known = self._state.log
        if erasure != known.last_erasure:
            self._rows.erase(self._log.erased_since(known.last_erasure))
            self._state = self._state._replace(log=known._replace(last_erasure=erasure))

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None before the first chunk."""
        return self._stored.encoder_id

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
        with self._lock:
            self._reset()

    def _sync(self, scope: Scope) -> _View:
        """Updates the rows of `scope` from the log, including writes by other processes."""
        with self._lock:
            while True:
                state = self._stored.state()
                if state == self._state and any(done.covers(scope) for done in self._loaded):
                    return self._rows.view()
                try:
                    self._advance(scope, state)
                except StoreCorruptError:
                    self._reset()  # a partly loaded scope must not count as loaded
                    raise
                # If the store was re-embedded meanwhile, the rows mix two encoders.
                if self._stored.state().generation == state.generation:
                    return self._rows.view()
                self._reset()

    def _advance(self, scope: Scope, state: VectorState) -> None:
        if state.generation != self._state.generation:
            self._check_encoder()
            self._reset()
        self._drop_up_to(state.log.last_erasure)
        known = self._state.log.last_seq
        if state.log.last_seq > known and self._loaded:
            self._add(self._stored.rows(Scope(), after_seq=known), state)
        self._state = state
        if not any(loaded.covers(scope) for loaded in self._loaded):
            rows = self._stored.rows(scope)  # first, since it may fail
            self._loaded = [*(d for d in self._loaded if not scope.covers(d)), scope]
            self._add(rows, state)

    def _check_encoder(self) -> None:
        """Raises if another process re-embedded the store with a different encoder."""
        stored = self.encoder_id
        if stored is not None and stored != self._encoder_id:
            raise EncoderMismatchError(
                stored=stored, given=self._encoder_id, location=self._log.location
            )

    def _add(self, rows: list[VectorRow], state: VectorState) -> None:
        """Adds the rows of loaded scopes; rows newer than `state` wait for the next sync."""
        known = self._rows.row_of
        wanted = {
            key: any(loaded.covers(make_scope(*key)) for loaded in self._loaded)
            for key in {row.scope for row in rows}
        }
        new = [
            r for r in rows if r.seq <= state.log.last_seq and wanted[r.scope] and r.id not in known
        ]
        self._rows.extend(new, self._block(new))

    def _block(self, rows: list[VectorRow]) -> Vectors:
        """Returns the vectors of rows as one matrix; raises if some can't be searched."""
        block = np.empty((0, self._dimensions), dtype=np.float32)
        if all(len(row.vector) == self._dimensions * block.itemsize for row in rows):
            block = np.frombuffer(b"".join(row.vector for row in rows), dtype=np.float32)
            block = block.reshape(len(rows), self._dimensions)
            if are_unit(block).all():
                return block
        self._check_usable(stored_vector(row.vector) for row in rows)
        return block

    def _check_usable(self, vectors: Iterable[Vectors]) -> None:
        """Raises an error with the number of vectors that can't be searched, if any."""
        usable = [is_usable(vector, dimensions=self._dimensions) for vector in vectors]
        if not all(usable):
            raise StoreCorruptError(
                f"{usable.count(False)} of {len(usable)} vectors read from {self._log.location} "
                "have the wrong length or are not finite; re-embed the store: gcmem reindex --path "
                f"{self._log.location}"
            )

    def search(
        self, queries: Vectors, *, k: int, where: ChunkFilter, frontier: int = 0
    ) -> list[list[tuple[str, float]]]:
        """Returns, for each query, the k most similar chunks; equal scores newest first.

        With `frontier`, the chunks on the frontier follow, newest first.
        """
        rows = self._sync(where.scope)
        vectors = rows.vectors
        matching, newest_first = self._select(rows, where, ordered=frontier > 0)
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
            if newest_first is not None:
                picked = newest_first[frontier_positions(row_scores[newest_first], frontier)]
                known = {row for row, _ in hits}
                hits += [
                    (int(matching[i]), float(row_scores[i]))
                    for i in picked
                    if int(matching[i]) not in known
                ]
            results.append([(rows.ids[row], score) for row, score in hits])
        return results

    def _select(
        self, rows: _View, where: ChunkFilter, *, ordered: bool
    ) -> tuple[Ints, Ints | None]:
        """Returns the rows that pass the filter and, if `ordered`, their positions newest first.

        The rows of a plain scope are cached until a row is added: selecting them takes longer
        than scoring them.
        """
        if not ordered or where != ChunkFilter(scope=where.scope):
            matching = self._matching(rows, where)
            found = self._newest_first(rows, matching) if ordered and matching.size else None
            return matching, found
        with self._lock:
            known = self._selected.get(where.scope)
        if known is not None and known[0] is rows.columns.base and known[1] == len(rows.vectors):
            return known[2], known[3]
        matching = self._matching(rows, where)
        newest_first = self._newest_first(rows, matching)
        with self._lock:
            if len(self._selected) >= SCOPES_KEPT:
                self._selected.clear()
            self._selected[where.scope] = (
                rows.columns.base,  # type: ignore[assignment]
                len(rows.vectors),
                matching,
                newest_first,
            )
        return matching, newest_first

    def _newest_first(self, rows: _View, matching: Ints) -> Ints:
        """Returns the positions in `matching`, newest event time first."""
        newest_first = self._by_time(rows)[::-1]
        if matching.size == len(rows.vectors):
            return newest_first
        place = np.full(len(rows.vectors), -1)
        place[matching] = np.arange(matching.size)
        ordered = place[newest_first]
        return np.asarray(ordered[ordered >= 0])

    def _by_time(self, rows: _View) -> Ints:
        """Returns the row numbers by event time; cached until a row is added."""
        with self._lock:
            known = self._ordered
        if known is not None and known[0] is rows.columns.base and known[1] == len(rows.vectors):
            return known[2]
        seq, _, at, _ = rows.columns
        order = np.lexsort((seq, at))
        with self._lock:
            self._ordered = (rows.columns.base, len(rows.vectors), order)  # type: ignore[assignment]
        return order

    def _matching(self, rows: _View, where: ChunkFilter) -> Ints:
        """Returns the row numbers that pass the filter."""
        seq, scope, at, recorded_at = rows.columns
        if where == EVERYTHING and seq.all():
            return np.arange(len(seq))
        mask = seq > 0
        if where.scope != Scope():
            visible = [n for n, stored in enumerate(rows.scopes) if where.scope.covers(stored)]
            mask &= (scope == visible[0]) if len(visible) == 1 else np.isin(scope, visible)
        if where.after is not None:
            mask &= at > to_micros(where.after)
        if where.as_of is not None:
            mask &= at <= to_micros(where.as_of)
        if where.known_at is not None:
            mask &= recorded_at <= to_micros(where.known_at)
        if where.metadata:
            mask &= np.isin(seq, self._log.seqs(where))
        return np.nonzero(mask)[0]

    def score(self, queries: Vectors, ids: Sequence[str]) -> Vectors:
        """Returns the cosine of every query to every id; an unknown id scores 0."""
        with self._lock:
            rows = self._rows.view()
        size = len(rows.vectors)  # row_of may already list rows that were added later
        known = {i: n for i in ids if (n := rows.row_of.get(i, size)) < size}
        # Vectors that are not loaded are read from the log.
        missing = self._stored.get([i for i in ids if i not in known])
        self._check_usable(missing.values())
        scores = np.zeros((len(queries), len(ids)), dtype=np.float32)
        for column, chunk_id in enumerate(ids):
            vector = rows.vectors[known[chunk_id]] if chunk_id in known else missing.get(chunk_id)
            if vector is not None:
                scores[:, column] = (queries * vector).sum(axis=1)
        return scores


def _best(
    rows: _View, query: Vectors, scores: Vectors, numbers: Ints, wanted: int
) -> list[tuple[int, float]]:
    """Returns the row numbers of the most similar chunks, with their exact cosine."""
    wanted = min(wanted, len(scores))
    if wanted == 0:
        return []
    least = np.partition(scores, -wanted)[-wanted] - ROUNDING
    best = numbers[scores >= least]
    # Summed again row by row: a matrix product may round equal vectors differently.
    exact = (rows.vectors[best] * query).sum(axis=1)
    order = ranked(exact, rows.columns[0][best])[:wanted]
    return [(int(best[i]), float(exact[i])) for i in order]
