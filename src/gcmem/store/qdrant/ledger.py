"""One point that orders all writers of a Qdrant store, since Qdrant has no transactions.

Qdrant can do two things for certain: write one point whole, and write it only if it is still as
expected (`update_filter`). The ledger is such a point. It counts the sequence numbers, and lists
the writes that are under way. A writer

1. takes a ticket: one conditional write moves the counter on and lists the ticket as open,
2. writes its points, each marked with the ticket,
3. commits: one conditional write takes the ticket off the list.

A reader loads the ledger first, and then asks only for points up to the counter whose ticket is
neither open nor dead: a batch is seen whole or not at all, however many requests and shards it
took. A ticket whose writer failed is declared dead, by the writer or, if it is gone, by whoever
writes after `LEASE_S`. A dead ticket can't be committed any more, and stays listed, so that a
request that arrives late changes nothing. Clocks decide only when a silent writer is given up,
never what is visible.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from gcmem.errors import (
    EncoderMismatchError,
    StoreCorruptError,
    StoreUnavailableError,
    StoreVersionError,
)
from gcmem.store.qdrant.server import Filter, Point, QdrantServer

SCHEMA = 1
LEASE_S = 600.0
"""A write that has not ended after this long is given up; a longer one must start again."""
SEAL_S = 120.0
"""The last step of a re-embedding, during which writers wait, is given up after this long."""
CONTENTION_S = 30.0
PAUSE_S = 0.02
POINT_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, "gcmem:ledger"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A write under way: its first sequence number, who has it, since when, and where it goes."""

    first_seq: int
    owner: str
    since_s: float
    collection: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """A re-embedding under way: what was erased or edited since it began must be done again."""

    collection: str
    encoder_id: str
    sealed_at_s: float | None = None
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The ledger as it was at one moment."""

    version: int = 0
    last_seq: int = 0
    encoder_id: str | None = None
    collection: str | None = None
    open: tuple[Ticket, ...] = ()
    dead: tuple[int, ...] = ()
    rebuild: Rebuild | None = None

    def visible(self, *conditions: Filter) -> dict[str, Any]:
        """Returns the filter of what was committed by then, and meets the conditions."""
        where: dict[str, Any] = {
            "must": [*conditions, {"key": "seq", "range": {"lte": self.last_seq}}]
        }
        hidden = sorted(self.hidden)
        if hidden:
            where["must_not"] = [{"key": "batch", "match": {"any": hidden}}]
        return where

    @property
    def hidden(self) -> frozenset[int]:
        """The tickets whose points nobody may see."""
        return frozenset((*(ticket.first_seq for ticket in self.open), *self.dead))

    def without(self, first_seq: int) -> tuple[Ticket, ...]:
        """Returns the open tickets but one."""
        return tuple(ticket for ticket in self.open if ticket.first_seq != first_seq)


class Ledger:
    """Hands out sequence numbers and tickets; safe with any number of threads and machines."""

    def __init__(self, server: QdrantServer, *, clock: Callable[[], float] = time.time) -> None:
        self._server = server
        self._clock = clock
        self._name = f"{server.collection}-state"
        self._turn = threading.Lock()
        self._given_up: set[int] = set()
        self._prepare()

    def _prepare(self) -> None:
        server = self._server
        if not server.exists(self._name):
            if server.exists(server.collection):
                raise StoreCorruptError(
                    f"{server.location} is a Qdrant collection, but not a gcmem store; "
                    "pass another name"
                )
            server.create(self._name, shards=1, indexes={"version": "integer"})
        server.read_from_majority(self._name)
        if not self._read():
            self._write(LedgerState(), expected=-1)

    def load(self) -> LedgerState:
        """Returns the ledger as it is now."""
        deadline = time.monotonic() + 1.0
        while not (found := self._read()):
            # While a write spreads over the replicas there may be no majority for any version.
            if time.monotonic() > deadline:
                raise StoreCorruptError(
                    f"{self._server.location} has lost its ledger; restore the collection "
                    f"{self._name} from a snapshot"
                )
            time.sleep(PAUSE_S)
        return self._state(found)

    def _read(self) -> dict[str, Any] | None:
        return next((p.payload for p in self._server.retrieve(self._name, [POINT_ID])), None)

    def _state(self, payload: dict[str, Any]) -> LedgerState:
        if payload["schema"] > SCHEMA:
            raise StoreVersionError(
                f"{self._server.location} was written by a newer gcmem (schema "
                f"{payload['schema']}, this one knows {SCHEMA}); upgrade gcmem"
            )
        rebuild = payload["rebuild"]
        return LedgerState(
            version=payload["version"],
            last_seq=payload["last_seq"],
            encoder_id=payload["encoder_id"],
            collection=payload["collection"],
            open=tuple(Ticket(**ticket) for ticket in payload["open"]),
            dead=tuple(payload["dead"]),
            rebuild=Rebuild(**rebuild | {"touched": tuple(rebuild["touched"])})
            if rebuild
            else None,
        )

    def _write(self, state: LedgerState, *, expected: int) -> None:
        """Writes the ledger if its version is still the expected one, or if there is none."""
        payload = {"schema": SCHEMA, **asdict(state)}
        self._server.upsert(
            self._name,
            [Point(POINT_ID, payload, [])],
            only_if={"must": [{"key": "version", "match": {"value": expected}}]},
        )

    def change(
        self,
        make: Callable[[LedgerState], LedgerState | None],
        *,
        done: Callable[[LedgerState], bool],
    ) -> LedgerState:
        """Replaces the state by what `make` makes of it; tries again when others were faster.

        The server does not say whether a conditional write took place, so the ledger is read
        again: `done` tells by what only this writer can have put there, or taken away. Where
        `make` makes None, it is not the time yet.
        """
        deadline = time.monotonic() + CONTENTION_S
        while True:
            # Threads of one process take turns, so that only processes ever collide.
            with self._turn:
                state = self.load()
                made = make(state)
                if made is not None:
                    if made != state:
                        self._write(
                            replace(made, version=state.version + 1), expected=state.version
                        )
                        state = self.load()
                    if done(state):
                        return state
            if time.monotonic() > deadline:
                raise StoreUnavailableError(
                    f"{self._server.location} has been busy with other writes, or with being "
                    f"re-embedded, for {CONTENTION_S:.0f} s; try again"
                )
            time.sleep(random.uniform(0, PAUSE_S))

    def claim(self, encoder_id: str, collection: str) -> LedgerState:
        """Makes a new collection the store's, unless it has one already."""

        def make(state: LedgerState) -> LedgerState:
            if state.collection is not None:
                return state
            return replace(state, encoder_id=encoder_id, collection=collection)

        return self.change(make, done=lambda state: state.collection is not None)

    def take(self, count: int, *, encoder_id: str | None = None) -> tuple[Ticket, LedgerState]:
        """Reserves so many sequence numbers for a write with vectors of the given encoder."""
        owner = uuid.uuid4().hex

        def make(state: LedgerState) -> LedgerState | None:
            if encoder_id is not None and state.encoder_id != encoder_id:
                raise EncoderMismatchError(
                    stored=state.encoder_id or "none",
                    given=encoder_id,
                    location=self._server.location,
                )
            state = self._without_stale(state)
            if state.rebuild is not None and state.rebuild.sealed_at_s is not None:
                return None
            ticket = Ticket(
                first_seq=state.last_seq + 1,
                owner=owner,
                since_s=self._clock(),
                collection=state.collection or "",
            )
            return replace(state, last_seq=state.last_seq + count, open=(*state.open, ticket))

        def is_mine(state: LedgerState) -> bool:
            return any(ticket.owner == owner for ticket in state.open)

        taken = self.change(make, done=is_mine)
        return next(ticket for ticket in taken.open if ticket.owner == owner), taken

    def _without_stale(self, state: LedgerState) -> LedgerState:
        """Gives up tickets and a seal whose holders have been silent for too long."""
        now_s = self._clock()
        stale = {
            ticket.first_seq
            for ticket in state.open
            if now_s - ticket.since_s > LEASE_S or ticket.first_seq in self._given_up
        }
        rebuild = state.rebuild
        if rebuild and rebuild.sealed_at_s is not None and now_s - rebuild.sealed_at_s > SEAL_S:
            rebuild = replace(rebuild, sealed_at_s=None)
        return replace(
            state,
            open=tuple(ticket for ticket in state.open if ticket.first_seq not in stale),
            dead=(*state.dead, *sorted(stale)),
            rebuild=rebuild,
        )

    def commit(self, ticket: Ticket, *, touched: tuple[str, ...] = ()) -> None:
        """Makes what was written with a ticket visible, all at once."""

        def make(state: LedgerState) -> LedgerState:
            if ticket.first_seq in state.dead:
                raise StoreUnavailableError(
                    f"a write to {self._server.location} took longer than {LEASE_S:.0f} s and was "
                    "given up; nothing of it is visible; write again, in smaller batches"
                )
            return replace(_touching(state, touched), open=state.without(ticket.first_seq))

        self.change(make, done=lambda state: ticket.first_seq not in state.hidden)

    def give_up(self, ticket: Ticket, *, touched: tuple[str, ...] = ()) -> LedgerState:
        """Declares a ticket dead, unless it was committed after all."""
        self._given_up.add(ticket.first_seq)  # if this fails too, the next write does it

        def make(state: LedgerState) -> LedgerState:
            if all(other.first_seq != ticket.first_seq for other in state.open):
                return state
            return replace(
                _touching(state, touched),
                open=state.without(ticket.first_seq),
                dead=(*state.dead, ticket.first_seq),
            )

        def is_closed(state: LedgerState) -> bool:
            return all(other.first_seq != ticket.first_seq for other in state.open)

        return self.change(make, done=is_closed)

    def start_rebuild(self, encoder_id: str, collection: str) -> LedgerState:
        """Enters a re-embedding into the ledger, or goes on with one by the same encoder."""

        def make(state: LedgerState) -> LedgerState:
            if state.rebuild is not None and state.rebuild.encoder_id == encoder_id:
                return replace(state, rebuild=replace(state.rebuild, sealed_at_s=None))
            rebuild = Rebuild(collection=collection, encoder_id=encoder_id)
            return replace(state, rebuild=rebuild)

        return self.change(
            make, done=lambda s: s.rebuild is not None and s.rebuild.encoder_id == encoder_id
        )

    def seal(self, rebuild: Rebuild) -> LedgerState:
        """Lets no further write begin, and waits for those under way."""
        now_s = self._clock()

        def make(state: LedgerState) -> LedgerState:
            state = self._without_stale(state)
            current = self._same(state, rebuild)
            return replace(state, rebuild=replace(current, sealed_at_s=now_s))

        def is_sealed(state: LedgerState) -> bool:
            return self._same(state, rebuild).sealed_at_s is not None

        sealed = self.change(make, done=is_sealed)
        deadline = time.monotonic() + CONTENTION_S
        while sealed.open:
            if time.monotonic() > deadline:
                self._unseal(rebuild)
                raise StoreUnavailableError(
                    f"writes to {self._server.location} have not ended for {CONTENTION_S:.0f} s; "
                    f"reindex again, it goes on from here (a writer that was killed is given up "
                    f"after {LEASE_S:.0f} s)"
                )
            time.sleep(PAUSE_S)
            sealed = self.load()
            self._same(sealed, rebuild)
        return sealed

    def _unseal(self, rebuild: Rebuild) -> None:
        def make(state: LedgerState) -> LedgerState:
            return replace(state, rebuild=replace(self._same(state, rebuild), sealed_at_s=None))

        self.change(make, done=lambda state: self._same(state, rebuild).sealed_at_s is None)

    def switch(self, rebuild: Rebuild) -> None:
        """Makes the re-embedded collection the store's, in one write; it must still be sealed."""

        def make(state: LedgerState) -> LedgerState:
            if self._same(state, rebuild).sealed_at_s != rebuild.sealed_at_s:
                raise StoreUnavailableError(
                    f"the last step of re-embedding {self._server.location} took longer than "
                    f"{SEAL_S:.0f} s, and others have written since; reindex again, it goes on "
                    "from here"
                )
            return replace(
                state, collection=rebuild.collection, encoder_id=rebuild.encoder_id, rebuild=None
            )

        self.change(make, done=lambda state: state.collection == rebuild.collection)

    def drop_rebuild(self, rebuild: Rebuild) -> None:
        """Strikes a re-embedding off the ledger."""
        self.change(
            lambda state: replace(state, rebuild=None) if _is(state, rebuild) else state,
            done=lambda state: not _is(state, rebuild),
        )

    def _same(self, state: LedgerState, rebuild: Rebuild) -> Rebuild:
        if state.rebuild is None or not _is(state, rebuild):
            raise StoreUnavailableError(
                f"{self._server.location} was re-embedded by another process meanwhile; "
                "open it again, and start over if it still needs to be"
            )
        return state.rebuild


def _is(state: LedgerState, rebuild: Rebuild) -> bool:
    return state.rebuild is not None and state.rebuild.collection == rebuild.collection


def _touching(state: LedgerState, ids: tuple[str, ...]) -> LedgerState:
    if state.rebuild is None or not ids:
        return state
    touched = tuple(dict.fromkeys((*state.rebuild.touched, *ids)))
    return replace(state, rebuild=replace(state.rebuild, touched=touched))
