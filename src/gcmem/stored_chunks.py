"""What a memory does with its stored chunks: everything that needs no model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from gcmem.calls import ScopedCache
from gcmem.errors import (
    BackupUnsupportedError,
    ChunkNotFoundError,
    ErasurePendingWarning,
    InvalidInputError,
    StoreUnavailableError,
    TrustError,
)
from gcmem.filters import check_ids, check_limit, check_seq, make_filter
from gcmem.ingest.chunks import check_metadata_size
from gcmem.protocols import (
    BackupSource,
    ChunkLog,
    LogState,
    Progress,
    SlowEraser,
    Store,
    VectorIndex,
)
from gcmem.settings import Settings
from gcmem.storable import check_metadata
from gcmem.types import Chunk, Scope, is_storable


class StoredChunks:
    """Lists, changes, erases and backs up the chunks of a store."""

    store: Store
    settings: Settings
    _cache: ScopedCache

    def get(
        self,
        chunk_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> Chunk:
        """Returns one chunk. Raises `ChunkNotFoundError` if it is not in the given scope."""
        scope = Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        known = isinstance(chunk_id, str) and is_storable(chunk_id)
        chunk = self.store.log.get([chunk_id]).get(chunk_id) if known else None
        if chunk is None or not scope.covers(chunk.scope):
            raise ChunkNotFoundError(chunk_id)
        return chunk

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        after_seq: int = 0,
    ) -> tuple[Chunk, ...]:
        """Lists chunks in the order they were added; `after_seq` starts the next page."""
        check_limit(limit)
        check_seq(after_seq)
        where = make_filter(user_id, agent_id, run_id, None, None, filters)
        return tuple(self.store.log.scan(where, after_seq=after_seq, limit=limit))

    def history(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        filters: Mapping[str, Any] | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> tuple[Chunk, ...]:
        """Returns every chunk in the order of event times, whenever it was added."""
        check_limit(limit)
        if not isinstance(newest_first, bool):
            raise InvalidInputError(f"newest_first={newest_first!r}: pass True or False")
        where = make_filter(user_id, agent_id, run_id, as_of, known_at, filters)
        return tuple(
            self.store.log.scan(where, by_time=True, newest_first=newest_first, limit=limit)
        )

    def update(
        self,
        chunk_id: str,
        *,
        metadata: Mapping[str, Any],
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        max_trust: int | None = None,
    ) -> Chunk:
        """Replaces the metadata of one chunk; its text, times and scope never change.

        Raises `TrustError` if the chunk is trusted more than `max_trust`.
        """
        chunk = self.get(chunk_id, user_id=user_id, agent_id=agent_id, run_id=run_id)
        _check_trust(chunk, max_trust)
        metadata = check_metadata(metadata)
        check_metadata_size(metadata, settings=self.settings)
        updated = self.store.log.set_metadata(chunk_id, metadata)
        if updated is None:  # deleted in the meantime
            raise ChunkNotFoundError(chunk_id)
        return updated

    def delete(
        self,
        chunk_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        max_trust: int | None = None,
    ) -> None:
        """Deletes one chunk permanently. Raises `TrustError` if it is trusted above `max_trust`."""
        chunk = self.get(chunk_id, user_id=user_id, agent_id=agent_id, run_id=run_id)
        _check_trust(chunk, max_trust)
        self._erase([chunk])

    def forget(
        self,
        *,
        ids: Sequence[str] | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        max_trust: int | None = None,
    ) -> int:
        """Deletes chunks permanently, by id, scope or filters, and returns how many.

        Everything derived from them is deleted too. Skips ids outside the scope and chunks that are
        trusted more than `max_trust`. Warns with `ErasurePendingWarning` if bytes stay on disk for
        a while (see `erasing`).
        """
        known = None if ids is None else check_ids(ids)
        scope = Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if ids is None and scope == Scope() and not filters:
            raise InvalidInputError("say what to forget: ids, a scope, or filters")
        where = make_filter(user_id, agent_id, run_id, None, None, filters)
        if ids is None or filters:
            wanted = None if known is None else set(known)
            found = [c for c in self.store.log.scan(where) if wanted is None or c.id in wanted]
        else:
            stored = self.store.log.get([i for i in known or () if is_storable(i)])
            found = [chunk for chunk in stored.values() if scope.covers(chunk.scope)]
        if max_trust is not None:
            found = [chunk for chunk in found if chunk.trust <= max_trust]
        return self._erase(found, scope=scope if ids is None else None)

    def erasing(self) -> str | None:
        """Says which bytes of deleted chunks are still on disk and until when, or returns None.

        No deleted chunk can be read once `forget` has returned. Its bytes stay in the embedded
        store's files while another process reads them, and are then removed automatically.
        """
        log, index = self.store.log, self.store.index
        left = log.erasing() if isinstance(log, SlowEraser) else None
        if left is None and not index.shares_log:
            return _left_in_index(index, log)
        return left

    def backup(
        self, path: Path | str, *, overwrite: bool = False, progress: Progress | None = None
    ) -> int:
        """Copies the embedded store into a file and returns how many chunks are in the copy.

        The store stays usable, and the copy holds everything added before the call. A store on a
        server raises `BackupUnsupportedError`.
        """
        log = self.store.log
        if not isinstance(log, BackupSource):
            raise BackupUnsupportedError(log.location)
        return log.backup(Path(path), overwrite=overwrite, progress=progress)

    def _erase(self, chunks: Sequence[Chunk], *, scope: Scope | None = None) -> int:
        """Deletes the chunks, and clears the cache of their scopes and of `scope`."""
        erased = self.store.delete(sorted(chunk.id for chunk in chunks))
        self._cache.forget({chunk.scope for chunk in chunks} | ({scope} if scope else set()))
        left = self.erasing() if erased else None
        if left is not None:
            warnings.warn(left, ErasurePendingWarning, stacklevel=3)
        return erased


def _left_in_index(index: VectorIndex, log: ChunkLog) -> str | None:
    with suppress(StoreUnavailableError):
        if index.state() == LogState() or index.state().last_erasure == log.state().last_erasure:
            return None  # without data, or with all erasures
    return (
        "the forgotten chunks can't be read any more, but their vectors may still be in the index "
        f"beside {log.location}; the next search that reaches it drops them"
    )


def _check_trust(chunk: Chunk, allowed: int | None) -> None:
    if allowed is not None and chunk.trust > allowed:
        raise TrustError(chunk.id, trust=chunk.trust, allowed=allowed)
