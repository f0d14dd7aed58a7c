"""Chunks as Qdrant's points, and filters over them in Qdrant's terms."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gcmem.store.qdrant.server import Filter, Payload
from gcmem.store.sqlite.log import make_scope
from gcmem.types import Chunk, ChunkFilter

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "gcmem:chunk")
INDEXES: Mapping[str, Any] = {
    # Points of one user lie together on disk: most questions are about one.
    "user_id": {"type": "keyword", "is_tenant": True},
    "agent_id": "keyword",
    "run_id": "keyword",
    "at": "datetime",
    "recorded_at": "datetime",
    "seq": "integer",
    "batch": "integer",
    "tags": "keyword",
}


def point_id(chunk_id: str) -> str:
    """Returns the UUID under which a chunk is kept; always the same one."""
    return str(uuid.uuid5(NAMESPACE, chunk_id))


def payload_of(chunk: Chunk) -> Payload:
    """Returns all of a chunk but its sequence number."""
    assert chunk.at is not None
    assert chunk.recorded_at is not None
    scope = {"user_id": chunk.scope.user_id, "agent_id": chunk.scope.agent_id}
    scope["run_id"] = chunk.scope.run_id
    return {
        "id": chunk.id,
        "text": chunk.text,
        "at": moment(chunk.at),
        "recorded_at": moment(chunk.recorded_at),
        "speaker": chunk.speaker,
        "session": chunk.session,
        "trust": chunk.trust,
        **{name: value for name, value in scope.items() if value is not None},
        **metadata_payload(chunk.metadata),
    }


def metadata_payload(metadata: Mapping[str, Any]) -> Payload:
    """Returns metadata as text, and as tags to filter by.

    As a Qdrant object it would change on the way (large integers become floats), and a filter
    would find a value also inside lists. A tag is one key with its value, types included.
    """
    return {
        "metadata": json.dumps(dict(metadata)),
        "tags": [_tag(key, value) for key, value in metadata.items() if _is_scalar(value)],
    }


def chunk_of(payload: Payload) -> Chunk:
    """Returns the chunk of a point."""
    return Chunk(
        id=payload["id"],
        text=payload["text"],
        at=datetime.fromisoformat(payload["at"]),
        recorded_at=datetime.fromisoformat(payload["recorded_at"]),
        seq=payload["seq"],
        scope=make_scope(*(payload.get(name) for name in ("user_id", "agent_id", "run_id"))),
        speaker=payload["speaker"],
        session=payload["session"],
        metadata=json.loads(payload["metadata"]),
        trust=payload["trust"],
    )


def moment(at: datetime) -> str:
    """Returns a time as Qdrant indexes it, to the microsecond; its numbers would be floats."""
    return at.isoformat(timespec="microseconds")


def conditions(where: ChunkFilter) -> list[Filter]:
    """Returns a filter as Qdrant conditions, all of which must hold."""
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
            found.append({"key": key, "range": {bound: moment(at)}})
    for key, wanted in where.metadata:
        members = wanted if isinstance(wanted, tuple) else (wanted,)
        found.append({"key": "tags", "match": {"any": [_tag(key, m) for m in members]}})
    return found


def newer_than(at: str, seq: int) -> Filter:
    """Returns the condition for what comes after a chunk in time; equal times go by number."""
    return {
        "should": [
            {"key": "at", "range": {"gt": at}},
            {"must": [at_moment(at), {"key": "seq", "range": {"gt": seq}}]},
        ]
    }


def at_moment(at: str) -> Filter:
    """Returns the condition for one event time."""
    return {"key": "at", "range": {"gte": at, "lte": at}}


def having_ids(point_ids: list[str]) -> Filter:
    """Returns the condition for single points."""
    return {"has_id": point_ids}


def _tag(key: str, value: Any) -> str:
    # 1 and 1.0 are equal and must give one tag; true and 1 are not, and "1" is neither.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps([key, value])


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))
