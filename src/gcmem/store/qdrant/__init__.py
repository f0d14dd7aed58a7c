"""Qdrant as log: one collection of chunks, ordered by the ledger beside it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from gcmem.errors import EncoderMismatchError, InvalidInputError, StoreError
from gcmem.protocols import Encoder, Progress, Store, Vectors
from gcmem.storable import check_chunks, check_metadata
from gcmem.store.qdrant.address import QdrantSettings, parse_url
from gcmem.store.qdrant.index import QdrantIndex
from gcmem.store.qdrant.ledger import Ledger, LedgerState, Ticket
from gcmem.store.qdrant.points import (
    INDEXES,
    at_moment,
    chunk_of,
    conditions,
    having_ids,
    metadata_payload,
    payload_of,
    point_id,
)
from gcmem.store.qdrant.reindex import rebuild
from gcmem.store.qdrant.server import (
    ID_PAGE,
    CollectionMissingError,
    Filter,
    Payload,
    Point,
    QdrantServer,
)
from gcmem.store.qdrant.verdicts import QdrantVerdicts
from gcmem.store.recent import LogBuffer
from gcmem.types import Chunk, ChunkFilter
from gcmem.vectors import checked

T = TypeVar("T")

PAGE = 1000


def open_qdrant(
    url: str,
    *,
    encoder: Encoder,
    stm_size: int,
    api_key: str | None = None,
    shard_number: int | None = None,
    replication_factor: int | None = None,
    write_consistency_factor: int | None = None,
    timeout_s: int | None = None,
) -> Store:
    """Opens a store on a Qdrant server, or in the client's local mode.

    `qdrant://host:6333/collection`, `qdrant+https://:key@host/collection?shard_number=3`,
    `qdrant:///folder` or `qdrant://:memory:`. Arguments take precedence over the URL.
    """
    address, options = parse_url(url)
    given = {
        "shard_number": shard_number,
        "replication_factor": replication_factor,
        "write_consistency_factor": write_consistency_factor,
        "timeout_s": timeout_s,
    }
    settings = QdrantSettings(
        **options | {name: value for name, value in given.items() if value is not None}
    )
    server = QdrantServer(replace(address, api_key=api_key or address.api_key), settings)
    try:
        ledger = Ledger(server)
        verdicts = QdrantVerdicts(server)
        log = QdrantLog(server, ledger=ledger, verdicts=verdicts)
    except BaseException:
        server.close()
        raise
    return Store(
        log=log,
        index=QdrantIndex(log, encoder_id=encoder.id),
        buffer=LogBuffer(log, capacity=stm_size),
        verdicts=verdicts,
    )


class QdrantLog:
    """An append-only log in Qdrant; any number of threads and machines may use it at once."""

    def __init__(
        self,
        server: QdrantServer,
        *,
        ledger: Ledger,
        verdicts: QdrantVerdicts | None = None,
    ) -> None:
        self.location = server.location
        self.server = server
        self._ledger = ledger
        self._verdicts = verdicts
        if verdicts is not None:
            verdicts.stored = self.get
        self._is_claimed = False
        state = ledger.load()
        if state.collection is not None and state.dead:
            with suppress(StoreError):
                self._sweep(state.collection, state.dead)

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None before the first chunk."""
        return self._ledger.load().encoder_id

    def append(
        self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str
    ) -> tuple[Chunk, ...]:
        """Stores all chunks or none; when it returns, every replica asked for has them.

        A call that fails may have stored its chunks all the same when the answer to the last
        request was lost; it has then stored all of them.
        """
        check_chunks(chunks)
        vectors = checked(vectors, count=len(chunks), encoder_id=encoder_id)
        payloads = [payload_of(chunk) for chunk in chunks]
        if len({chunk.id for chunk in chunks}) < len(chunks):
            raise InvalidInputError("a chunk id is in the batch twice")
        if not self._is_claimed or not chunks:
            self._claim(encoder_id, vectors.shape[1])
        if not chunks:
            return ()
        with self._ticket(len(chunks), encoder_id=encoder_id) as (ticket, state):
            points = [
                Point(
                    point_id(payload["id"]),
                    {**payload, "seq": seq, "batch": ticket.first_seq},
                    vector.tolist(),
                )
                for seq, payload, vector in zip(
                    range(ticket.first_seq, ticket.first_seq + len(chunks)),
                    payloads,
                    vectors,
                    strict=True,
                )
            ]
            self._insert(ticket, points, dead=state.dead)
        return tuple(replace(chunk, seq=seq) for seq, chunk in enumerate(chunks, ticket.first_seq))

    def _claim(self, encoder_id: str, dimensions: int) -> None:
        """Makes sure that the store has a collection, which it then keeps."""
        state = self._ledger.load()
        if state.collection is None:
            # Under a name of its own: another machine may claim the store for another encoder.
            made = self._make_collection(dimensions)
            state = self._ledger.claim(encoder_id, made)
            if state.collection == made:
                self.server.point_alias(self.server.collection, made)
            else:
                self.server.drop(made)
        if state.encoder_id != encoder_id:
            raise EncoderMismatchError(
                stored=state.encoder_id or "none", given=encoder_id, location=self.location
            )
        self._is_claimed = True

    def _make_collection(self, dimensions: int) -> str:
        name = f"{self.server.collection}-{uuid.uuid4().hex[:8]}"
        self.server.create(name, dimensions=dimensions, indexes=INDEXES)
        return name

    @contextmanager
    def _ticket(
        self, count: int, *, encoder_id: str | None = None, touched: tuple[str, ...] = ()
    ) -> Iterator[tuple[Ticket, LedgerState]]:
        """Commits what is written inside, or makes sure that nobody ever sees it."""
        ticket, state = self._ledger.take(count, encoder_id=encoder_id)
        try:
            yield ticket, state
            self._ledger.commit(ticket, touched=touched)
        except BaseException:
            # Where this fails as well, the ticket stays open, and unseen until it is given up.
            with suppress(StoreError):
                if ticket.first_seq in self._ledger.give_up(ticket, touched=touched).dead:
                    self._sweep(ticket.collection, [ticket.first_seq])
            raise

    def _sweep(self, collection: str, dead: Sequence[int]) -> None:
        """Erases what dead writes have left behind; nobody sees it, it only takes room."""
        leftovers = {"key": "batch", "match": {"any": list(dead)}}
        self.server.delete(collection, {"must": [leftovers]})

    def _insert(self, ticket: Ticket, points: list[Point], *, dead: Sequence[int]) -> None:
        """Writes points that are not there yet; a repeated request changes nothing."""
        # What a dead write has left behind may be overwritten, as may an earlier try of this one.
        replaceable = {"key": "batch", "match": {"any": [ticket.first_seq, *dead]}}
        only_if = {"must": [replaceable]}
        self.server.upsert(ticket.collection, points, only_if=only_if)
        ids = [point.id for point in points]
        stored = self.server.retrieve(ticket.collection, ids, payload=["batch"])
        if any(point.payload["batch"] != ticket.first_seq for point in stored):
            raise InvalidInputError("a chunk with one of these ids exists already")

    def read(self, ask: Callable[[LedgerState, str], T], *, empty: T) -> T:
        """Asks a question of the collection as the ledger shows it; an unclaimed store is empty."""
        state = self._ledger.load()
        while state.collection is not None:
            try:
                return ask(state, state.collection)
            except CollectionMissingError:
                # Re-embedded between the two requests? Then the ledger names another one by now.
                before, state = state, self._ledger.load()
                if state.collection == before.collection:
                    raise
        return empty

    def get(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """Returns the chunks that exist, by id."""

        def ask(state: LedgerState, collection: str) -> dict[str, Chunk]:
            hidden = state.hidden
            found = self.server.retrieve(collection, [point_id(chunk_id) for chunk_id in ids])
            chunks = [
                chunk_of(point.payload)
                for point in found
                if point.payload["seq"] <= state.last_seq and point.payload["batch"] not in hidden
            ]
            return {chunk.id: chunk for chunk in chunks}

        none: dict[str, Chunk] = {}
        found = self.read(ask, empty=none)
        return {chunk_id: found[chunk_id] for chunk_id in ids if chunk_id in found}

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""
        names = {point_id(chunk_id): chunk_id for chunk_id in self.get(ids)}

        def ask(state: LedgerState, collection: str) -> dict[str, Vectors]:
            found = self.server.retrieve(collection, list(names), payload=False, vectors=True)
            return {names[p.id]: np.array(p.vector, dtype=np.float32) for p in found}

        none: dict[str, Vectors] = {}
        return self.read(ask, empty=none)

    def scan(
        self,
        where: ChunkFilter,
        *,
        by_time: bool = False,
        newest_first: bool = False,
        after_seq: int = 0,
        limit: int | None = None,
    ) -> Iterator[Chunk]:
        """Yields matching chunks page by page, as the log was when the scan began."""
        asked = conditions(where)
        if after_seq:
            asked.append({"key": "seq", "range": {"gt": after_seq}})
        began = self._ledger.load()

        def page(*more: Filter, by: str, size: int) -> list[Payload]:
            # Asked of the collection of now, filtered as of then.
            return self.read(
                lambda _, collection: self.server.scroll(
                    collection,
                    began.visible(*asked, *more),
                    by=by,
                    newest_first=newest_first,
                    limit=size,
                ),
                empty=[],
            )

        pages = _by_time if by_time else _by_seq
        found = pages(page, newest_first=newest_first, limit=limit)
        yield from map(chunk_of, islice(found, limit))

    def count(self, where: ChunkFilter) -> int:
        """Returns how many chunks match."""
        asked = conditions(where)
        return self.read(
            lambda state, collection: self.server.count(collection, state.visible(*asked)),
            empty=0,
        )

    def delete(self, ids: Sequence[str]) -> int:
        """Erases chunks with their vectors and verdicts; the sequence numbers are not used again.

        Chunks vanish page by page: a reader may see some of them while the call runs.
        """
        found = list(self.get(list(dict.fromkeys(ids))))
        if not found:
            return 0
        with self._ticket(1, touched=tuple(found)) as (ticket, _):
            for start in range(0, len(found), ID_PAGE):
                page = [point_id(chunk_id) for chunk_id in found[start : start + ID_PAGE]]
                self.server.delete(ticket.collection, {"must": [having_ids(page)]})
            if self._verdicts is not None:
                self._verdicts.forget(found)
        return len(found)

    def set_metadata(self, chunk_id: str, metadata: Mapping[str, Any]) -> Chunk | None:
        """Replaces a chunk's metadata, durably; None if there is no such chunk."""
        payload = metadata_payload(check_metadata(metadata))
        if chunk_id not in self.get([chunk_id]):
            return None
        with self._ticket(1, touched=(chunk_id,)) as (ticket, _):
            # By a filter, which finds nothing where the chunk was erased meanwhile.
            where = {"must": [having_ids([point_id(chunk_id)])]}
            self.server.set_payload(ticket.collection, payload, where)
        return self.get([chunk_id]).get(chunk_id)

    def reindex(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Embeds every chunk anew into a second collection and switches over at the end.

        Killed half way, the old vectors still serve and the next call goes on where it stopped.
        Writers wait during the last step, which copies what was written meanwhile.
        """
        if self._ledger.load().collection is None:
            self._claim(encoder.id, encoder.dimensions)
            return 0
        return rebuild(
            self.server,
            self._ledger,
            encoder=encoder,
            make_collection=self._make_collection,
            progress=progress,
        )

    def drop(self) -> None:
        """Erases the whole store, with its ledger and its verdicts."""
        state = self._ledger.load()
        copy = state.rebuild.collection if state.rebuild is not None else None
        name = self.server.collection
        for collection in (state.collection, copy, f"{name}-verdicts", f"{name}-state"):
            if collection is not None:
                self.server.drop(collection)

    def close(self) -> None:
        """Closes the connections."""
        self.server.close()


def _by_seq(
    page: Callable[..., list[Payload]], *, newest_first: bool, limit: int | None
) -> Iterator[Payload]:
    """Yields payloads in log order, at least `limit` of them."""
    size = PAGE if limit is None else max(1, min(PAGE, limit))
    further = "lt" if newest_first else "gt"
    more: list[Filter] = []
    while True:
        found = page(*more, by="seq", size=size)
        yield from found
        if len(found) < size:
            return
        more = [{"key": "seq", "range": {further: found[-1]["seq"]}}]


def _by_time(
    page: Callable[..., list[Payload]], *, newest_first: bool, limit: int | None
) -> Iterator[Payload]:
    """Yields payloads by event time; equal times in log order, at least `limit` of them.

    Qdrant orders by one field, so the moment at which a page ends may be cut anywhere: that one
    is asked for again, in log order.
    """
    size = PAGE if limit is None else min(PAGE, limit) + 1
    more: list[Filter] = []
    while True:
        found = page(*more, by="at", size=size)
        last_at = found[-1]["at"] if len(found) == size else None
        whole = [payload for payload in found if payload["at"] != last_at]
        yield from sorted(whole, key=lambda p: (p["at"], p["seq"]), reverse=newest_first)
        if last_at is None:
            return
        at_once = partial(page, at_moment(last_at))
        yield from _by_seq(at_once, newest_first=newest_first, limit=limit)
        more = [{"key": "at", "range": {"lt" if newest_first else "gt": last_at}}]
