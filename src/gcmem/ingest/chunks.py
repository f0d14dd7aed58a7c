"""Turns messages into chunks, ready to be stored: split, dated and scoped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gcmem.errors import FutureTimeError, InvalidInputError, InvalidTextError
from gcmem.ingest.identity import chunk_ids
from gcmem.ingest.segment import CountTokens, segment
from gcmem.settings import Settings
from gcmem.storable import metadata_bytes
from gcmem.types import MAX_TRUST, TRUSTED, UNTRUSTED, Chunk, Scope, Turn


def check_limits(turns: Sequence[Turn], *, now: datetime, settings: Settings) -> None:
    """Raises if a turn or its metadata is too long, or its time is too far in the future."""
    for turn in turns:
        if settings.max_future is not None and turn.at and turn.at - now > settings.max_future:
            raise FutureTimeError(turn.at, now=now, allowed=settings.max_future)
        if len(turn.text) > settings.max_text_chars:
            raise InvalidTextError(
                f"text has {len(turn.text)} characters; at most {settings.max_text_chars} are "
                "allowed; split it, or raise Settings.max_text_chars"
            )
        check_metadata_size(turn.metadata, settings=settings)


def check_metadata_size(metadata: Mapping[str, Any], *, settings: Settings) -> None:
    """Raises if the metadata of one message is larger than the settings allow."""
    if metadata and (size := metadata_bytes(metadata)) > settings.max_metadata_bytes:
        raise InvalidInputError(
            f"metadata has {size} bytes of JSON; at most {settings.max_metadata_bytes} are allowed "
            "per message; keep large values elsewhere, or raise Settings.max_metadata_bytes"
        )


def check_trust(trust: int) -> int:
    """Returns the trust level; raises if it is not valid."""
    if isinstance(trust, bool) or not isinstance(trust, int) or not 0 <= trust <= MAX_TRUST:
        raise InvalidInputError(
            f"trust={trust!r}: pass a whole number from {UNTRUSTED} (untrusted) to {MAX_TRUST}; "
            f"the default is {TRUSTED}"
        )
    return trust


def chunks_of(
    turns: Sequence[Turn],
    *,
    scope: Scope,
    now: datetime,
    settings: Settings,
    count_tokens: CountTokens,
    trust: int = TRUSTED,
) -> tuple[Chunk, ...]:
    """Returns the chunks of all turns in order, not yet stored; a turn without a time gets `now`.

    A future time also becomes `now`, unless max_future is None: otherwise the chunk would win over
    everything recorded until then.
    """
    check_limits(turns, now=now, settings=settings)
    check_trust(trust)
    chunks = []
    for turn in turns:
        at = turn.at or now
        if settings.max_future is not None:
            at = min(at, now)
        pieces = segment(turn.text, budget=settings.chunk_tokens, count_tokens=count_tokens)
        for chunk_id, piece in zip(chunk_ids(turn, len(pieces)), pieces, strict=True):
            chunks.append(
                Chunk(
                    id=chunk_id,
                    text=piece,
                    at=at,
                    scope=scope,
                    speaker=turn.speaker,
                    session=turn.session,
                    metadata=turn.metadata,
                    trust=trust,
                )
            )
    return tuple(chunks)
