"""A chunk as a row of a file, and the digest that compares source and target."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Protocol

import numpy as np

from gcmem.errors import FutureTimeError, InvalidInputError
from gcmem.ingest.chunks import check_trust
from gcmem.ingest.turns import check_name, check_text
from gcmem.protocols import Vectors
from gcmem.settings import Settings
from gcmem.storable import check_chunks, check_metadata
from gcmem.times import parse_time
from gcmem.types import ORIGIN_KEY, TRUSTED, Chunk, Scope, utc

NAMESPACE = uuid.UUID("6f0c4f9e-3f3e-5c0b-9b6e-0d6763a6d6d1")
"""Namespace of the ids that are made from content, for rows without an id."""
DIGEST_BYTES = 16
MODULUS = 1 << (8 * DIGEST_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One chunk to be moved, with its vector if that is moved too.

    A chunk without a recording time gets the time of the import.
    """

    line: int
    chunk: Chunk
    vector: Vectors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that can't be imported, and why."""

    line: int
    reason: str


class Source(Protocol):
    """A file or store that rows come from. It can be read more than once."""

    @property
    def name(self) -> str:
        """The name in messages."""

    @property
    def count(self) -> int | None:
        """The number of rows, if known."""

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the vectors that the source provides; None if it provides none."""

    @property
    def digest(self) -> int | None:
        """The digest of all rows, if the source states it."""

    def rows(self, *, vectors: bool) -> Iterator[Row | BadRow]:
        """Yields the rows in order, with their vectors if requested."""


def storable_rows(source: Source, *, vectors: bool) -> Iterator[Row | BadRow]:
    """Yields the rows of a source; a chunk that can't be stored becomes a bad row.

    An old store may contain such a chunk, since earlier versions checked less.
    """
    for row in source.rows(vectors=vectors):
        try:
            if isinstance(row, Row):
                check_chunks([_as_recorded(row.chunk)])
            yield row
        except InvalidInputError as error:
            yield BadRow(line=row.line, reason=str(error))


def _as_recorded(chunk: Chunk) -> Chunk:
    """Fills in a missing recording time, which a row otherwise gets when it is stored."""
    return chunk if chunk.recorded_at else replace(chunk, recorded_at=chunk.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRows:
    """How to read rows that gcmem did not write: their timezone, and what counts as the future."""

    now: datetime
    tz: tzinfo | None = None
    max_future: timedelta | None = Settings().max_skew
    """How far ahead a row may be dated: only as far as clocks may differ, as it keeps its time."""

    def chunk(self, record: Mapping[str, Any]) -> Chunk:
        """Reads a row with a text and a time; a row without an id gets one from its content."""
        if record.get("text") is None:
            raise InvalidInputError("no `text`; to import other chat formats, use gcmem add --file")
        if record.get("at") is None:
            raise InvalidInputError("no event time: add `at`, for example 2026-03-01T09:00:00Z")
        recorded_at = record.get("recorded_at")
        chunk = Chunk(
            id="",
            text=check_text(record["text"]),
            at=parse_time(record["at"], tz=self.tz),
            recorded_at=None if recorded_at is None else parse_time(recorded_at, tz=self.tz),
            scope=scope_of(record),
            speaker=check_name(record.get("speaker") or "user", name="speaker"),
            session=check_name(record.get("session"), name="session"),
            metadata=check_metadata(_metadata(record)),
            trust=_trust(record),
        )
        assert chunk.at is not None
        if self.max_future is not None and chunk.at - self.now > self.max_future:
            raise FutureTimeError(chunk.at, now=self.now, allowed=self.max_future)
        if record.get("id") is not None:
            return replace(chunk, id=check_name(str(record["id"]), name="id"))
        return replace(
            chunk, id=str(uuid.uuid5(NAMESPACE, canonical(chunk, recorded=False).decode()))
        )


def own_chunk(record: Mapping[str, Any]) -> Chunk:
    """Reads a row that gcmem wrote; checks only types."""
    for name in ("id", "text", "speaker"):
        if not isinstance(record.get(name), str):
            raise InvalidInputError(f"{name}={record.get(name)!r} is not a string")
    if not isinstance(record.get("session"), str | None):
        raise InvalidInputError(f"session={record['session']!r} is not a string")
    return Chunk(
        id=record["id"],
        text=record["text"],
        at=_moment(record, "at"),
        recorded_at=_moment(record, "recorded_at"),
        seq=seq if isinstance(seq := record.get("seq"), int) else None,
        scope=scope_of(record),
        speaker=record["speaker"],
        session=record.get("session"),
        metadata=_metadata(record),
        trust=_trust(record),
    )


def _trust(record: Mapping[str, Any]) -> int:
    return check_trust(TRUSTED if record.get("trust") is None else record["trust"])


def scope_of(record: Mapping[str, Any]) -> Scope:
    """Returns the scope of a record."""
    return Scope(
        user_id=record.get("user_id"),
        agent_id=record.get("agent_id"),
        run_id=record.get("run_id"),
    )


def record_of(chunk: Chunk) -> dict[str, Any]:
    """Returns the chunk as a row; leaves out fields that are None."""
    fields = {
        "id": chunk.id,
        "seq": chunk.seq,
        "at": chunk.at and chunk.at.isoformat(),
        "recorded_at": chunk.recorded_at and chunk.recorded_at.isoformat(),
        "user_id": chunk.scope.user_id,
        "agent_id": chunk.scope.agent_id,
        "run_id": chunk.scope.run_id,
        "speaker": chunk.speaker,
        "session": chunk.session,
        "text": chunk.text,
        "metadata": chunk.metadata or None,
        "trust": None if chunk.trust == TRUSTED else chunk.trust,
    }
    return {name: value for name, value in fields.items() if value is not None}


def packed(vector: Vectors) -> str:
    """Returns a vector as base64 of little-endian 32-bit floats."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def unpacked(text: Any) -> Vectors | None:
    """Returns a packed vector as an array, or None if there is none."""
    if text is None:
        return None
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4")
    except (binascii.Error, ValueError, TypeError):
        raise InvalidInputError("its vector can't be read") from None


def digest_of(content: bytes) -> int:
    """Returns a hash of a chunk's canonical bytes as a number; its sum does not depend on order."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest())


def canonical(chunk: Chunk, *, recorded: bool = True) -> bytes:
    """Returns a chunk's content as bytes that are the same in every store.

    The sequence number and the merge mark belong to the store, so they are left out.
    """
    fields = record_of(chunk)
    fields.pop("seq", None)
    if not recorded:
        fields.pop("recorded_at", None)
    if chunk.metadata:
        fields["metadata"] = _plain({k: v for k, v in chunk.metadata.items() if k != ORIGIN_KEY})
    fields["metadata"] = fields.get("metadata") or None
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    """Turns whole floats into integers, since a store may return one as the other."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _moment(record: Mapping[str, Any], name: str) -> datetime:
    value = record.get(name)
    if isinstance(value, datetime):
        return utc(value, name=name)
    if not isinstance(value, str):
        raise InvalidInputError(f"{name}={value!r} is not a time")
    return parse_time(value)


def _metadata(record: Mapping[str, Any]) -> Any:
    """Returns the metadata of a record; in Parquet it is a string of JSON."""
    value = record.get("metadata")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InvalidInputError("its metadata is not JSON") from None
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInputError("its metadata is not a JSON object")
    return value or {}
