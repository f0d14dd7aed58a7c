"""Copies rows into a store in batches: a batch is stored completely or not, each chunk once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from gcmem.errors import BadRowError, EncoderMismatchError, InvalidInputError
from gcmem.indexed_text import TEXT_VERSION, dense_texts
from gcmem.protocols import Encoder, Progress, Store, Vectors
from gcmem.transfer.rows import BadRow, Row, Source, storable_rows
from gcmem.transfer.stores import BATCH
from gcmem.types import MAX_TRUST, ORIGIN_KEY, TRUSTED, Chunk, ChunkFilter
from gcmem.vectors import encode, is_usable

MAX_REPORTED = 20
"""Maximum number of bad rows listed in a report; the rest are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """The result of a copy: how many rows were read, added, already present, or bad."""

    rows: int = 0
    added: int = 0
    present: int = 0
    embedded: int = 0
    bad: int = 0
    bad_rows: tuple[BadRow, ...] = ()
    merged: bool = False
    lowered: int = 0
    """Rows that claimed more than the default trust and got `max_trust` instead."""
    max_trust: int = MAX_TRUST


@dataclass
class _Tally:
    rows: int = 0
    added: int = 0
    embedded: int = 0
    bad: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)
    lowered: int = 0


def copy_rows(
    source: Source,
    store: Store,
    *,
    encoder: Encoder,
    now: datetime,
    skip_bad: bool = False,
    max_trust: int = MAX_TRUST,
    progress: Progress | None = None,
) -> Copied:
    """Stores every row whose chunk is not stored yet; if interrupted, call it again.

    A bad row raises an error and its batch is not stored, unless `skip_bad` leaves such rows out.
    Rows without a recording time get `now`. No row gets more trust than `max_trust`.
    """
    stored_with = store.index.encoder_id
    if stored_with not in (None, encoder.id):
        raise EncoderMismatchError(
            stored=str(stored_with), given=encoder.id, location=store.log.location
        )
    tally = _Tally()
    marker = _MergeMarker(stored_count=store.log.count(ChunkFilter()))
    version = store.index.text_version
    # Vectors travel only in the newest way of embedding.
    reuse = source.encoder_id == encoder.id and version == TEXT_VERSION
    for batch in _batches(source, tally, reuse=reuse, skip_bad=skip_bad):
        known = store.log.get([row.chunk.id for row in batch])
        rows = _cap_trust(marker.new_rows(batch, known), max_trust, tally)
        _append(store, rows, encoder=encoder, now=now, reuse=reuse, tally=tally)
        tally.rows += len(batch)
        if progress is not None:
            progress(tally.rows, max(tally.rows, source.count or 0))
    return Copied(
        rows=tally.rows,
        added=tally.added,
        present=tally.rows - tally.added,
        embedded=tally.embedded,
        bad=tally.bad,
        bad_rows=tuple(tally.bad_rows),
        merged=bool(marker.merging and tally.added),
        lowered=tally.lowered,
        max_trust=max_trust,
    )


class _MergeMarker:
    """Marks new rows if they are merged into a store that already contains other chunks.

    If the store contains only rows read so far, this is a plain copy, perhaps a resumed one.
    Otherwise new rows get a mark: their position in the log comes from the merge, so it must not
    count as evidence about their writers' clocks.
    """

    def __init__(self, *, stored_count: int) -> None:
        self._stored_count = stored_count
        self._origin: str | None = None
        self._present = 0
        self.merging: bool | None = None

    def new_rows(self, batch: list[Row], known: dict[str, Chunk]) -> list[Row]:
        """Returns the rows that the store lacks, marked if this is a merge."""
        self._origin = self._origin or batch[0].chunk.id
        new: dict[str, Row] = {}
        for row in batch:
            if row.chunk.id in known or row.chunk.id in new:
                self._present += 1
                continue
            if self.merging is None:
                self.merging = self._present != self._stored_count
            new[row.chunk.id] = self._marked(row) if self.merging else row
        return list(new.values())

    def _marked(self, row: Row) -> Row:
        chunk = row.chunk
        if chunk.recorded_at is None or ORIGIN_KEY in chunk.metadata:
            return row
        metadata = {**chunk.metadata, ORIGIN_KEY: self._origin}
        return replace(row, chunk=replace(chunk, metadata=metadata))


def _batches(source: Source, tally: _Tally, *, reuse: bool, skip_bad: bool) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in storable_rows(source, vectors=reuse):
        if isinstance(row, Row):
            batch.append(row)
        elif not skip_bad:
            raise BadRowError(row.line, row.reason, file=source.name)
        else:
            tally.bad += 1
            if len(tally.bad_rows) < MAX_REPORTED:
                tally.bad_rows.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _cap_trust(rows: list[Row], max_trust: int, tally: _Tally) -> list[Row]:
    """Returns the rows with a trust level of at most `max_trust`."""
    tally.lowered += sum(row.chunk.trust > max(max_trust, TRUSTED) for row in rows)
    return [
        replace(row, chunk=replace(row.chunk, trust=max_trust))
        if row.chunk.trust > max_trust
        else row
        for row in rows
    ]


def _append(
    store: Store, rows: list[Row], *, encoder: Encoder, now: datetime, reuse: bool, tally: _Tally
) -> None:
    if not rows:
        return
    vectors, embedded = _vectors(
        rows, encoder=encoder, reuse=reuse, version=store.index.text_version
    )
    chunks = [
        row.chunk if row.chunk.recorded_at else replace(row.chunk, recorded_at=now) for row in rows
    ]
    try:
        stored = store.append(chunks, vectors, encoder_id=encoder.id)
    except InvalidInputError:
        # Another import may have stored some of these rows first; store the rest.
        known = store.log.get([chunk.id for chunk in chunks])
        if not known:
            raise
        missing = [row for row in rows if row.chunk.id not in known]
        _append(store, missing, encoder=encoder, now=now, reuse=reuse, tally=tally)
    else:
        tally.added += len(stored)
        tally.embedded += embedded


def _vectors(
    rows: list[Row], *, encoder: Encoder, reuse: bool, version: int
) -> tuple[Vectors, int]:
    """Returns one vector per row, the row's own if usable, and how many were newly embedded."""
    vectors = np.empty((len(rows), encoder.dimensions), dtype=np.float32)
    missing = []
    for n, row in enumerate(rows):
        vector = row.vector if reuse else None
        if vector is not None and is_usable(vector, dimensions=encoder.dimensions):
            vectors[n] = vector
        else:
            missing.append(n)
    if missing:
        vectors[missing] = encode(
            encoder, dense_texts([rows[n].chunk for n in missing], version=version)
        )
    return vectors, len(missing)
