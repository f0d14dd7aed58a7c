"""Reads a store that an older gcmem kept in Qdrant alone, so that it can be copied elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from gcmem.errors import InvalidInputError
from gcmem.store.qdrant.address import QdrantSettings, parse_url
from gcmem.store.qdrant.server import Payload, QdrantServer
from gcmem.types import Chunk, Scope


def old_chunks(url: str) -> Iterator[Chunk]:
    """Yields the chunks of an old store in log order."""
    address, options = parse_url(url)
    server = QdrantServer(address, QdrantSettings(**options))
    try:
        name = f"{server.collection}-state"
        state = next(server.everything(name, {}), None) if server.exists(name) else None
        if state is None:
            raise InvalidInputError(
                f"{server.location} is no store of an older gcmem. Qdrant is an index, not a "
                "store: pass sqlite:///FILE.db?index=qdrant://… or postgresql://…?index=qdrant://…"
            )
        if state["collection"] is None:
            return
        # Writes that were never finished are listed by the number of their first chunk.
        unfinished = {ticket["first_seq"] for ticket in state["open"]} | set(state["dead"])
        where = {"must": [{"key": "seq", "range": {"lte": state["last_seq"]}}]}
        found = [
            payload
            for payload in server.everything(state["collection"], where)
            if payload["batch"] not in unfinished
        ]
        yield from map(_chunk_of, sorted(found, key=lambda payload: int(payload["seq"])))
    finally:
        server.close()


def _chunk_of(payload: Payload) -> Chunk:
    scope = {name: payload.get(name) for name in ("user_id", "agent_id", "run_id")}
    return Chunk(
        id=payload["id"],
        text=payload["text"],
        at=datetime.fromisoformat(payload["at"]),
        recorded_at=datetime.fromisoformat(payload["recorded_at"]),
        scope=Scope(**scope),
        speaker=payload["speaker"],
        session=payload["session"],
        metadata=json.loads(payload["metadata"]),
        trust=payload["trust"],
    )
