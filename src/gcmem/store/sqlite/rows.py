"""Chunks as rows of the chunks table, and filters as SQL."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from gcmem.frozen import FrozenDict
from gcmem.types import Chunk, ChunkFilter, Scalar, Scope

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = (
    "seq, id, user_id, agent_id, run_id, at, recorded_at, speaker, session, text, metadata, trust"
)
NO_METADATA = FrozenDict()


def to_micros(at: datetime) -> int:
    """Returns microseconds since 1970, exactly."""
    return (at - EPOCH) // timedelta(microseconds=1)


def row_of(chunk: Chunk) -> tuple[Any, ...]:
    """Returns a chunk's columns, without its sequence number."""
    assert chunk.at is not None
    assert chunk.recorded_at is not None
    scope = chunk.scope
    return (
        chunk.id,
        scope.user_id,
        scope.agent_id,
        scope.run_id,
        to_micros(chunk.at),
        to_micros(chunk.recorded_at),
        chunk.speaker,
        chunk.session,
        chunk.text,
        json.dumps(chunk.metadata, ensure_ascii=False),
        chunk.trust,
    )


def chunk_of(row: tuple[Any, ...]) -> Chunk:
    """Returns the chunk of a row."""
    seq, chunk_id, user_id, agent_id, run_id, at, recorded_at, *rest = row
    speaker, session, text, meta, trust = rest
    return Chunk(
        id=chunk_id,
        text=text,
        at=EPOCH + timedelta(microseconds=at),
        recorded_at=EPOCH + timedelta(microseconds=recorded_at),
        seq=seq,
        scope=make_scope(user_id, agent_id, run_id),
        speaker=speaker,
        session=session,
        metadata=NO_METADATA if meta == "{}" else json.loads(meta),
        trust=trust,
    )


@lru_cache(maxsize=4096)
def make_scope(user_id: str | None, agent_id: str | None, run_id: str | None) -> Scope:
    """Returns the scope of stored ids; cached, since many rows share the same few scopes."""
    return Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)


def conditions_of(where: ChunkFilter) -> tuple[list[str], list[Any]]:
    """Returns the filter as SQL conditions with their values."""
    conditions: list[str] = []
    values: list[Any] = []
    for column in ("user_id", "agent_id", "run_id"):
        value = getattr(where.scope, column)
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    for condition, moment in (
        ("at > ?", where.after),
        ("at <= ?", where.as_of),
        ("recorded_at <= ?", where.known_at),
    ):
        if moment is not None:
            conditions.append(condition)
            values.append(to_micros(moment))
    if where.before_seq is not None:
        conditions.append("seq < ?")
        values.append(where.before_seq)
    for key, wanted in where.metadata:
        members = wanted if isinstance(wanted, tuple) else (wanted,)
        conditions.append(f"({' OR '.join(_metadata_test(key, m, values) for m in members)})")
    return conditions, values


def _metadata_test(key: str, member: Scalar, values: list[Any]) -> str:
    """Returns an SQL test that also compares types: in SQLite's JSON, true equals 1."""
    path = f'$."{key}"'
    if member is None or isinstance(member, bool):
        values.extend([path, {None: "null", True: "true", False: "false"}[member]])
        return "json_type(metadata, ?) IS ?"
    types = "('text')" if isinstance(member, str) else "('integer', 'real')"
    values.extend([path, path, member])
    return f"(json_type(metadata, ?) IN {types} AND json_extract(metadata, ?) = ?)"


def where_clause(conditions: list[str]) -> str:
    """Returns the conditions as a WHERE clause, or nothing."""
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""
