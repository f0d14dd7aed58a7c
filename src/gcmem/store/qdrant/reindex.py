"""Re-embeds a Qdrant store: a second collection is filled, then the ledger names that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gcmem.errors import StoreUnavailableError
from gcmem.protocols import Encoder, Progress
from gcmem.store.qdrant.ledger import Ledger, LedgerState, Rebuild
from gcmem.store.qdrant.points import having_ids, point_id
from gcmem.store.qdrant.server import ID_PAGE, Payload, Point, QdrantServer
from gcmem.vectors import encode

BATCH = 256


def rebuild(
    server: QdrantServer,
    ledger: Ledger,
    *,
    encoder: Encoder,
    make_collection: Callable[[int], str],
    progress: Progress | None,
) -> int:
    """Copies every chunk with a new vector, switches over, and returns how many there are.

    The ledger is what readers follow, since it changes the collection and the encoder in one
    write; the alias is for other tools and follows it.
    """
    work = _start(server, ledger, encoder, make_collection)
    copying = _Copying(server, work, encoder, progress)
    while copying.advance(ledger.load()):
        pass
    sealed = ledger.seal(work)
    while copying.advance(sealed):
        pass
    if sealed.collection is None or sealed.rebuild is None:
        raise StoreUnavailableError(f"{server.location} has no chunks to re-embed")
    _repeat_changes(server, sealed.collection, sealed.rebuild)
    count = server.count(work.collection, {})
    if count != server.count(sealed.collection, sealed.visible()):
        ledger.drop_rebuild(work)
        server.drop(work.collection)
        raise StoreUnavailableError(
            f"the copy of {server.location} is not complete, the old vectors still serve; "
            "reindex again"
        )
    ledger.switch(sealed.rebuild)
    server.point_alias(server.collection, work.collection)
    server.drop(sealed.collection)
    return count


def _start(
    server: QdrantServer, ledger: Ledger, encoder: Encoder, make_collection: Callable[[int], str]
) -> Rebuild:
    earlier = ledger.load().rebuild
    if earlier is not None and earlier.encoder_id == encoder.id:
        made = earlier.collection
    else:
        made = make_collection(encoder.dimensions)
    work = ledger.start_rebuild(encoder.id, made).rebuild
    if work is None or work.collection != made:
        server.drop(made)  # another process was faster; its collection will do
        return _start(server, ledger, encoder, make_collection)
    if earlier is not None and earlier.collection != made:
        server.drop(earlier.collection)
    return work


class _Copying:
    """Copies in log order, and knows how far it has come."""

    def __init__(
        self, server: QdrantServer, work: Rebuild, encoder: Encoder, progress: Progress | None
    ) -> None:
        self._server = server
        self._target = work.collection
        self._encoder = encoder
        self._progress = progress
        # An interrupted call may have left its last page in some shards only: that is repeated.
        last = server.scroll(self._target, {}, by="seq", newest_first=True, limit=BATCH)
        self._cursor = last[-1]["seq"] - 1 if last else 0

    def advance(self, state: LedgerState) -> bool:
        """Copies one page; False when there is none."""
        if state.collection is None:
            return False
        # Not past a write under way: it would be overtaken, and never copied.
        horizon = min((t.first_seq - 1 for t in state.open), default=state.last_seq)
        due = {"key": "seq", "range": {"gt": self._cursor, "lte": horizon}}
        page = self._server.scroll(state.collection, state.visible(due), by="seq", limit=BATCH)
        if not page:
            return False
        if self._progress is not None:
            done = self._server.count(
                self._target, {"must": [{"key": "seq", "range": {"lte": self._cursor}}]}
            )
            self._progress(done, self._server.count(state.collection, state.visible()))
        vectors = encode(self._encoder, [payload["text"] for payload in page])
        self._server.upsert(
            self._target,
            [
                Point(point_id(payload["id"]), payload, vector.tolist())
                for payload, vector in zip(page, vectors, strict=True)
            ],
        )
        self._cursor = page[-1]["seq"]
        return True


def _repeat_changes(server: QdrantServer, source: str, work: Rebuild) -> None:
    """Does again in the copy what was erased or edited while it was made."""
    ids = [point_id(chunk_id) for chunk_id in work.touched]
    for start in range(0, len(ids), ID_PAGE):
        page = ids[start : start + ID_PAGE]
        alive = {point.id: point.payload for point in server.retrieve(source, page)}
        gone = [each for each in page if each not in alive]
        if gone:
            server.delete(work.collection, {"must": [having_ids(gone)]})
        for each, payload in alive.items():
            server.set_payload(work.collection, _edited(payload), {"must": [having_ids([each])]})


def _edited(payload: Payload) -> dict[str, Any]:
    return {name: payload[name] for name in ("metadata", "tags")}
