"""The rows that the embedded indexes hold in memory, kept in step with the log."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gcmem.errors import StoreCorruptError
from gcmem.protocols import LogState
from gcmem.store.sqlite.file import GENERATION, get_meta
from gcmem.store.sqlite.log import STATE, SQLiteLog
from gcmem.store.sqlite.rows import conditions_of, make_scope, to_micros, where_clause
from gcmem.types import ChunkFilter, Scope

Ints = np.ndarray[Any, np.dtype[np.int64]]
ScopeKey = tuple[str | None, str | None, str | None]

EVERYTHING = ChunkFilter()
SCOPES_KEPT = 256
"""Number of scopes whose row selection is cached between searches."""


class VectorState(NamedTuple):
    """The log's state, and how often what is derived from it was rebuilt."""

    log: LogState = LogState()
    generation: int = 0


class RowPart(Protocol):
    """What an index holds per row, made from one blob per chunk."""

    table: str
    column: str
    """Where the blobs are; a chunk without one is not loaded if `is_required`."""
    is_required: bool

    def reset(self) -> None:
        """Drops everything."""

    def prepare(self, blobs: Sequence[bytes | None]) -> Any:
        """Reads blobs; raises if they can't be used. Nothing is changed yet."""

    def extend(self, prepared: Any) -> None:
        """Adds what `prepare` returned, as further rows."""

    def erase(self, rows: Ints) -> None:
        """Overwrites rows; a search may still be reading them."""

    def view(self, size: int) -> Any:
        """Returns the first `size` rows, without copying."""


class View(NamedTuple):
    """The rows at one moment; rows added later are not part of it."""

    ids: list[str]
    scopes: list[Scope]
    row_of: dict[str, int]
    columns: Ints
    parts: dict[str, Any]
    """What the indexes hold of the rows, by table."""

    @property
    def size(self) -> int:
        """The number of rows, erased ones included."""
        return int(self.columns.shape[1])


class _Row(NamedTuple):
    seq: int
    id: str
    scope: ScopeKey
    at: int
    recorded_at: int
    blobs: tuple[bytes | None, ...]


class LoadedRows:
    """Loads a scope at its first search, everything if no scope is given; then only changes."""

    def __init__(self, log: SQLiteLog, parts: Sequence[RowPart]) -> None:
        self._log = log
        self._parts = tuple(parts)
        self._lock = threading.Lock()
        self.reset()
        log.when_erased(self._drop_erased)

    def reset(self) -> None:
        """Drops every row; the next search reads the log again."""
        with self._lock:
            self._reset()

    def remove(self, table: str) -> None:
        """Drops a part for good."""
        with self._lock:
            self._parts = tuple(part for part in self._parts if part.table != table)
            self._reset()

    def _reset(self) -> None:
        self._ids: list[str] = []
        self._scopes: list[Scope] = []
        self._scope_numbers: dict[ScopeKey, int] = {}
        self._row_of: dict[str, int] = {}
        self._size = 0
        # seq, scope, at, recorded_at; a row whose seq is 0 was erased.
        self._columns: Ints = np.empty((4, 0), dtype=np.int64)
        for part in self._parts:
            part.reset()
        self._loaded: list[Scope] = []
        self._state = VectorState()
        self._ordered: tuple[Ints, int, Ints] | None = None
        self._selected: dict[Scope, tuple[Ints, int, Ints, Ints]] = {}

    def view(self) -> View:
        """Returns the loaded rows without asking the log."""
        with self._lock:
            return self._view()

    def _view(self) -> View:
        parts = {part.table: part.view(self._size) for part in self._parts}
        columns = self._columns[:, : self._size]
        return View(self._ids, self._scopes, self._row_of, columns, parts)

    def sync(self, scope: Scope) -> View:
        """Updates the rows of `scope` from the log, including writes by other processes."""
        with self._lock:
            while True:
                state = self._read_state()
                if state == self._state and any(done.covers(scope) for done in self._loaded):
                    return self._view()
                try:
                    self._advance(scope, state)
                except StoreCorruptError:
                    self._reset()  # a partly loaded scope must not count as loaded
                    raise
                # If the store was re-embedded meanwhile, the rows mix two encoders.
                if self._read_state().generation == state.generation:
                    return self._view()
                self._reset()

    def _read_state(self) -> VectorState:
        with self._log.reading() as connection:
            seq, erasure = connection.execute(f"SELECT {STATE}").fetchone()
            generation = int(get_meta(connection, GENERATION) or 0)
        return VectorState(LogState(seq or 0, erasure or 0), generation)

    def _advance(self, scope: Scope, state: VectorState) -> None:
        if state.generation != self._state.generation:
            self._reset()
        self._drop_up_to(state.log.last_erasure)
        known = self._state.log.last_seq
        if state.log.last_seq > known and self._loaded:
            self._add(self._rows(Scope(), after_seq=known), state)
        self._state = state
        if not any(loaded.covers(scope) for loaded in self._loaded):
            rows = self._rows(scope)  # first, since it may fail
            self._loaded = [*(d for d in self._loaded if not scope.covers(d)), scope]
            self._add(rows, state)

    def _rows(self, scope: Scope, *, after_seq: int = 0) -> list[_Row]:
        """Reads the rows of the chunks in `scope` after `after_seq`."""
        conditions, values = conditions_of(ChunkFilter(scope=scope))
        if after_seq:
            conditions.append("seq > ?")
            values.append(after_seq)
        columns = "".join(f", {part.column}" for part in self._parts)
        joins = "".join(
            f" {'' if part.is_required else 'LEFT '}JOIN {part.table} USING (seq)"
            for part in self._parts
        )
        with self._log.reading() as connection:
            rows = connection.execute(
                f"SELECT seq, id, user_id, agent_id, run_id, at, recorded_at{columns} "
                f"FROM chunks{joins} {where_clause(conditions)} ORDER BY seq",
                values,
            ).fetchall()
        return [_Row(r[0], r[1], (r[2], r[3], r[4]), r[5], r[6], tuple(r[7:])) for r in rows]

    def _add(self, rows: list[_Row], state: VectorState) -> None:
        """Adds the rows of loaded scopes; rows newer than `state` wait for the next sync."""
        wanted = {
            key: any(loaded.covers(make_scope(*key)) for loaded in self._loaded)
            for key in {row.scope for row in rows}
        }
        last, known = state.log.last_seq, self._row_of
        new = [r for r in rows if r.seq <= last and wanted[r.scope] and r.id not in known]
        if not new:
            return
        prepared = [
            part.prepare([row.blobs[n] for row in new]) for n, part in enumerate(self._parts)
        ]
        end = self._size + len(new)
        if end > self._columns.shape[1]:
            columns = np.zeros((4, max(end, self._columns.shape[1] * 5 // 4)), dtype=np.int64)
            columns[:, : self._size] = self._columns[:, : self._size]
            self._columns = columns
        for row in new:
            if row.scope not in self._scope_numbers:
                self._scope_numbers[row.scope] = len(self._scopes)
                self._scopes.append(make_scope(*row.scope))
        self._columns[:, self._size : end] = np.array(
            [(r.seq, self._scope_numbers[r.scope], r.at, r.recorded_at) for r in new]
        ).T
        self._row_of.update((row.id, n) for n, row in enumerate(new, self._size))
        self._ids.extend(row.id for row in new)
        for part, content in zip(self._parts, prepared, strict=True):
            part.extend(content)
        self._size = end

    def _drop_erased(self) -> None:
        """Drops rows as soon as their chunks are forgotten, not only at the next search."""
        with self._lock:
            if self._loaded:
                self._drop_up_to(self._log.state().last_erasure)

    def _drop_up_to(self, erasure: int) -> None:
        known = self._state.log
        if erasure == known.last_erasure:
            return
        erased = self._log.erased_since(known.last_erasure)
        rows = np.nonzero(np.isin(self._columns[0, : self._size], erased))[0]
        if rows.size:
            self._columns = self._columns.copy()  # searches may be reading the old one
            self._columns[0, rows] = 0
            for part in self._parts:
                part.erase(rows)
            for row in rows:
                self._row_of.pop(self._ids[row], None)
                self._ids[row] = ""
        self._state = self._state._replace(log=known._replace(last_erasure=erasure))

    def select(self, rows: View, where: ChunkFilter) -> tuple[Ints, Ints]:
        """Returns the rows that pass the filter, and their positions newest first.

        Those of a plain scope are cached until a row is added: selecting takes longer than scoring.
        """
        if where != ChunkFilter(scope=where.scope):
            matching = self._matching(rows, where)
            return matching, self._newest_first(rows, matching)
        with self._lock:
            known = self._selected.get(where.scope)
        if known is not None and known[0] is rows.columns.base and known[1] == rows.size:
            return known[2], known[3]
        matching = self._matching(rows, where)
        newest_first = self._newest_first(rows, matching)
        with self._lock:
            if len(self._selected) >= SCOPES_KEPT:
                self._selected.clear()
            base = rows.columns.base
            self._selected[where.scope] = (base, rows.size, matching, newest_first)  # type: ignore[assignment]
        return matching, newest_first

    def _newest_first(self, rows: View, matching: Ints) -> Ints:
        """Returns the positions in `matching`, newest event time first."""
        newest_first = self._by_time(rows)[::-1]
        if matching.size == rows.size:
            return newest_first
        place = np.full(rows.size, -1)
        place[matching] = np.arange(matching.size)
        ordered = place[newest_first]
        return np.asarray(ordered[ordered >= 0])

    def _by_time(self, rows: View) -> Ints:
        """Returns the row numbers by event time; cached until a row is added."""
        with self._lock:
            known = self._ordered
        if known is not None and known[0] is rows.columns.base and known[1] == rows.size:
            return known[2]
        seq, _, at, _ = rows.columns
        order = np.lexsort((seq, at))
        with self._lock:
            self._ordered = (rows.columns.base, rows.size, order)  # type: ignore[assignment]
        return order

    def _matching(self, rows: View, where: ChunkFilter) -> Ints:
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
        if where.before_seq is not None:
            mask &= seq < where.before_seq
        if where.metadata:
            mask &= np.isin(seq, self._log.seqs(where))
        return np.nonzero(mask)[0]
