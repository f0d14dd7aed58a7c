"""Qdrant as MTM: exact search where few chunks match, its HNSW graph where many do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gcmem.errors import EncoderMismatchError
from gcmem.protocols import Vectors
from gcmem.ranking import ranked
from gcmem.store.qdrant.ledger import LedgerState
from gcmem.store.qdrant.points import conditions, newer_than, point_id
from gcmem.store.qdrant.server import Filter, Scored
from gcmem.types import ChunkFilter

if TYPE_CHECKING:
    from gcmem.store.qdrant import QdrantLog

EXACT_BELOW = 20_000
"""Up to so many matching chunks, scoring all of them is quick, and misses none."""
TIE_ROOM = 16
MOST_TIES = 10_000
"""Of more equally similar chunks than this, not surely the newest are found."""
FRONTIER_PAGE = 64
ROUNDING = 1e-5
FIELDS = ["id", "at", "seq"]


class _Hit(NamedTuple):
    id: str
    at: str
    seq: int
    score: float


class QdrantIndex:
    """Similarity over the log's own collection; it caches nothing, so there is nothing to lag."""

    def __init__(self, log: QdrantLog, *, encoder_id: str, exact_below: int = EXACT_BELOW) -> None:
        self._log = log
        self._encoder_id = encoder_id
        self._exact_below = exact_below

    def search(
        self, queries: Vectors, *, k: int, where: ChunkFilter, frontier: int = 0
    ) -> list[list[tuple[str, float]]]:
        """Returns, for each query, the k most similar chunks; equal scores newest first.

        With `frontier`, those follow, newest first, that fewer newer ones than that match.
        """
        vectors = [query.tolist() for query in queries]

        def ask(state: LedgerState, collection: str) -> list[list[tuple[str, float]]]:
            self._check_encoder(state)
            search = _Search(
                self._log,
                collection,
                state,
                conditions(where),
                exact=self._is_exact(state, collection, where),
            )
            results = []
            for vector, hits in zip(
                vectors, search.best(vectors, k, room=max(TIE_ROOM, frontier)), strict=True
            ):
                found = hits[:k]
                if frontier:
                    known = {hit.id for hit in found}
                    newest = search.frontier(vector, hits, frontier)
                    found = found + [hit for hit in newest if hit.id not in known]
                results.append([(hit.id, hit.score) for hit in found])
            return results

        return self._log.read(ask, empty=[[] for _ in vectors])

    def score(self, queries: Vectors, ids: Sequence[str]) -> Vectors:
        """Returns the cosine of every query to every id; an unknown id scores 0."""
        scores = np.zeros((len(queries), len(ids)), dtype=np.float32)
        if not ids:
            return scores

        def ask(state: LedgerState, collection: str) -> dict[str, list[float]]:
            self._check_encoder(state)
            points = self._log.server.retrieve(
                collection,
                [point_id(chunk_id) for chunk_id in ids],
                payload=["id", "seq", "batch"],
                vectors=True,
            )
            hidden = state.hidden
            return {
                point.payload["id"]: point.vector
                for point in points
                if point.payload["seq"] <= state.last_seq and point.payload["batch"] not in hidden
            }

        none: dict[str, list[float]] = {}
        found = self._log.read(ask, empty=none)
        for column, chunk_id in enumerate(ids):
            if chunk_id in found:
                scores[:, column] = queries @ np.array(found[chunk_id], dtype=np.float32)
        return scores

    def rebuild(self) -> None:
        """Does nothing: there is nothing cached."""

    def _check_encoder(self, state: LedgerState) -> None:
        if state.encoder_id is not None and state.encoder_id != self._encoder_id:
            raise EncoderMismatchError(
                stored=state.encoder_id, given=self._encoder_id, location=self._log.location
            )

    def _is_exact(self, state: LedgerState, collection: str, where: ChunkFilter) -> bool:
        if state.last_seq <= self._exact_below:
            return True
        # The filter without the ledger's part, which nearly everything passes.
        asked = {"must": conditions(where)}
        return self._log.server.count(collection, asked, exact=False) <= self._exact_below


class _Search:
    """One search at one moment of the log."""

    def __init__(
        self,
        log: QdrantLog,
        collection: str,
        state: LedgerState,
        asked: list[Filter],
        *,
        exact: bool,
    ) -> None:
        self._server = log.server
        self._collection = collection
        self._state = state
        self._asked = asked
        self._exact = exact

    def _ask(self, vectors: Sequence[list[float]], limit: int, *more: Filter) -> list[list[_Hit]]:
        found = self._server.query(
            self._collection,
            vectors,
            self._state.visible(*self._asked, *more),
            limit=limit,
            exact=self._exact,
            payload=FIELDS,
        )
        return [[_hit(scored) for scored in hits] for hits in found]

    def best(self, vectors: Sequence[list[float]], k: int, *, room: int) -> list[list[_Hit]]:
        """Returns the k most similar and some more, equal scores newest first."""
        limit = k + room
        while True:
            found = self._ask(vectors, limit)
            # Qdrant cuts equal scores anywhere; the newest of them are wanted.
            cut = any(len(h) == limit and h[k - 1].score - h[-1].score < ROUNDING for h in found)
            if not cut or limit >= MOST_TIES:
                return [_in_order(hits) for hits in found]
            limit = min(limit * 8, MOST_TIES)

    def frontier(self, vector: list[float], hits: list[_Hit], depth: int) -> list[_Hit]:
        """Returns the chunks that fewer than `depth` newer ones match, newest first.

        Whatever is older than the newest `depth` hits, and no hit itself, is matched by all of
        them. So the next page is asked for among what is newer than those, and so on: about
        log N / log(page / depth) requests, and every chunk that counts is among the hits.
        """
        found = {hit.id: hit for hit in hits}
        size = max(FRONTIER_PAGE, 8 * depth)
        page = hits
        while len(page) > depth:
            oldest = sorted(page, key=lambda hit: (hit.at, hit.seq), reverse=True)[depth - 1]
            page = self._ask([vector], size, newer_than(oldest.at, oldest.seq))[0]
            found.update((hit.id, hit) for hit in page)
            if len(page) < size:
                break
        newest_first = sorted(found.values(), key=lambda hit: (hit.at, hit.seq), reverse=True)
        scores = np.array([hit.score for hit in newest_first])
        matched: Any = np.tril(scores[None, :] > scores[:, None] - ROUNDING, -1).sum(axis=1)
        return [hit for hit, times in zip(newest_first, matched, strict=True) if times < depth]


def _hit(scored: Scored) -> _Hit:
    payload = scored.payload
    return _Hit(payload["id"], payload["at"], payload["seq"], scored.score)


def _in_order(hits: list[_Hit]) -> list[_Hit]:
    return [hits[n] for n in ranked([hit.score for hit in hits], [hit.seq for hit in hits])]
