"""Qdrant as a search engine beside the log: one collection, one point per chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from gcmem.errors import StoreCorruptError
from gcmem.protocols import EngineHit, EngineMark, LogState, SearchEngine, Vectors
from gcmem.store.qdrant.address import QdrantSettings, parse_url
from gcmem.store.qdrant.server import CollectionMissingError, Filter, Payload, Point, QdrantServer
from gcmem.types import Chunk, ChunkFilter

EXACT_BELOW = 20_000
"""Up to this many matching chunks, scoring all of them is quick and misses none."""
MARK = 0
"""The number of the point that keeps the mark; sequence numbers start at 1."""
FIELDS = ["id", "at", "seq"]
INDEXES: Mapping[str, Any] = {
    # Points of one user lie together on disk: most questions are about one.
    "user_id": {"type": "keyword", "is_tenant": True},
    "agent_id": "keyword",
    "run_id": "keyword",
    "at": "datetime",
    "recorded_at": "datetime",
    "seq": "integer",
}


def open_engine(url: str) -> SearchEngine:
    """Opens the engine at a qdrant:// URL, or in the client's local mode.

    `qdrant://host:6333/collection`, `qdrant+https://:key@host/collection?shard_number=3`,
    `qdrant:///folder` or `qdrant://:memory:`.
    """
    address, options = parse_url(url)
    server = QdrantServer(address, QdrantSettings(**options))
    try:
        return QdrantEngine(server)
    except BaseException:
        server.close()
        raise


class QdrantEngine:
    """Two collections, of which one is in use: the one that the alias points to."""

    def __init__(self, server: QdrantServer, *, slot: str | None = None) -> None:
        self._server = server
        self.location = server.location
        self._name = slot or server.collection
        if slot is None and server.exists(f"{server.collection}-state"):
            raise StoreCorruptError(
                f"{server.location} is a whole store of an older gcmem, with its log. Copy it: "
                f"gcmem migrate {server.location} sqlite:///FILE.db, then pass FILE.db with "
                f"?index={server.location}-index"
            )
        if slot is None and server.exists(self._name) and server.aliased(self._name) is None:
            raise StoreCorruptError(
                f"{server.location} is a Qdrant collection, but not one of gcmem's; "
                "pass another name"
            )
        if server.exists(self._name):
            server.read_from_majority(self._name)

    def mark(self) -> EngineMark | None:
        """Returns the mark saved last; None if there is no collection."""
        try:
            found = next(iter(self._server.retrieve(self._name, [MARK])), None)
        except CollectionMissingError:
            return None
        return None if found is None else _mark_of(found.payload)

    def set_mark(self, mark: EngineMark, *, replacing: EngineMark) -> None:
        """Saves a mark, unless another process has replaced `replacing` meanwhile."""
        expected = [
            {"key": key, "match": {"value": value}} for key, value in _payload_of(replacing).items()
        ]
        point = Point(MARK, _payload_of(mark), [])
        self._server.upsert(self._name, [point], only_if={"must": expected})

    def prepare(self, mark: EngineMark, *, dimensions: int) -> None:
        """Makes a collection with a mark, unless somebody just has."""
        slot = self._slots[0] if self._name == self._server.collection else self._name
        self._server.create(slot, dimensions=dimensions, indexes=INDEXES)
        # A condition that no mark meets: writes only if there is none.
        never = {"must": [{"key": "last_seq", "match": {"value": -1}}]}
        self._server.upsert(slot, [Point(MARK, _payload_of(mark), [])], only_if=never)
        if self._name == self._server.collection:
            self._server.point_alias(self._name, slot)
        self._server.read_from_majority(slot)

    def clear(self) -> None:
        """Drops the collection."""
        self._server.drop(self._server.aliased(self._name) or self._name)

    def upsert(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Writes chunks under their sequence numbers."""
        self._server.upsert(
            self._name,
            [
                Point(chunk.seq or 0, _point_payload(chunk), vector.tolist())
                for chunk, vector in zip(chunks, vectors, strict=True)
            ],
        )

    def delete(self, seqs: Sequence[int]) -> None:
        """Drops chunks by sequence number, also from a rebuild that was stopped."""
        self._server.delete(self._name, seqs)
        if self._name == self._server.collection:
            used = self._server.aliased(self._name)
            for slot in self._slots:
                if slot != used and self._server.exists(slot):
                    self._server.delete(slot, seqs)

    def search(
        self,
        queries: Vectors,
        *,
        k: int,
        where: ChunkFilter,
        up_to_seq: int,
        seqs: Sequence[int] | None = None,
        newer_than: EngineHit | None = None,
    ) -> list[list[EngineHit]]:
        """Returns the k most similar chunks of each query, best first."""
        asked = _conditions(where)
        if seqs is not None:
            asked.append({"has_id": list(seqs)})
        # Without the rest, which nearly everything passes: the server only estimates the number.
        exact = (
            up_to_seq <= EXACT_BELOW
            or self._server.count(self._name, {"must": asked}, exact=False) <= EXACT_BELOW
        )
        asked.append({"key": "seq", "range": {"lte": up_to_seq}})
        if newer_than is not None:
            asked.append(_newer_than(newer_than))
        found = self._server.query(
            self._name,
            [query.tolist() for query in queries],
            {"must": asked},
            limit=k,
            exact=exact,
            payload=FIELDS,
        )
        return [[_hit(scored.payload, scored.score) for scored in hits] for hits in found]

    def vectors(self, seqs: Sequence[int]) -> dict[int, Vectors]:
        """Returns the vectors of the chunks that exist, by sequence number."""
        found = self._server.retrieve(self._name, seqs, vectors=True)
        return {point.id: np.array(point.vector, dtype=np.float32) for point in found}

    def successor(self) -> SearchEngine:
        """Returns the slot that is not in use."""
        first, second = self._slots
        used = self._server.aliased(self._server.collection)
        return QdrantEngine(self._server, slot=second if used == first else first)

    def switch_to(self, successor: SearchEngine) -> None:
        """Points the alias to the successor's slot, at once for everybody; drops the other slot."""
        assert isinstance(successor, QdrantEngine)
        used = self._server.aliased(self._server.collection)
        self._server.point_alias(self._server.collection, successor._name)
        if used is not None:
            self._server.drop(used)

    def drop(self) -> None:
        """Deletes the collections."""
        for slot in self._slots:
            self._server.drop(slot)

    def close(self) -> None:
        """Closes the connections."""
        self._server.close()

    @property
    def _slots(self) -> tuple[str, str]:
        return f"{self._server.collection}.a", f"{self._server.collection}.b"


def _payload_of(mark: EngineMark) -> Payload:
    return {
        "log_id": mark.log_id,
        "encoder_id": mark.encoder_id,
        "last_seq": mark.state.last_seq,
        "last_erasure": mark.state.last_erasure,
    }


def _mark_of(payload: Payload) -> EngineMark:
    state = LogState(payload["last_seq"], payload["last_erasure"])
    return EngineMark(payload["log_id"], payload["encoder_id"], state)


def _point_payload(chunk: Chunk) -> Payload:
    """Returns what searches filter by; text and metadata are in the log alone."""
    assert chunk.at is not None
    assert chunk.recorded_at is not None
    scope = {name: getattr(chunk.scope, name) for name in ("user_id", "agent_id", "run_id")}
    return {
        "id": chunk.id,
        "seq": chunk.seq,
        "at": _moment(chunk.at),
        "recorded_at": _moment(chunk.recorded_at),
        **{name: value for name, value in scope.items() if value is not None},
    }


def _moment(at: datetime) -> str:
    """Returns a time as Qdrant indexes it, to the microsecond; its numbers would be floats."""
    return at.isoformat(timespec="microseconds")


def _hit(payload: Payload, score: float) -> EngineHit:
    return EngineHit(payload["id"], datetime.fromisoformat(payload["at"]), payload["seq"], score)


def _conditions(where: ChunkFilter) -> list[Filter]:
    """Returns scope and times as Qdrant conditions, all of which must hold."""
    found: list[Filter] = [
        {"key": name, "match": {"value": value}}
        for name in ("user_id", "agent_id", "run_id")
        if (value := getattr(where.scope, name)) is not None
    ]
    for key, bound, at in (
        ("at", "gt", where.after),
        ("at", "lte", where.as_of),
        ("recorded_at", "lte", where.known_at),
    ):
        if at is not None:
            found.append({"key": key, "range": {bound: _moment(at)}})
    if where.before_seq is not None:
        found.append({"key": "seq", "range": {"lt": where.before_seq}})
    return found


def _newer_than(hit: EngineHit) -> Filter:
    """Returns the condition for chunks after a hit; equal times go by sequence number."""
    at = _moment(hit.at)
    same_time = {"key": "at", "range": {"gte": at, "lte": at}}
    later = {"key": "seq", "range": {"gt": hit.seq}}
    return {"should": [{"key": "at", "range": {"gt": at}}, {"must": [same_time, later]}]}
