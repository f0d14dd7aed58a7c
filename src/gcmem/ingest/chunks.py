"""Makes unsaved chunks of turns: segmented, timed, scoped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gcmem.errors import FutureTimeError, InvalidInputError, InvalidTextError
from gcmem.ingest.identity import chunk_id
from gcmem.ingest.segment import CountTokens, segment
from gcmem.settings import Settings
from gcmem.storable import metadata_bytes
from gcmem.types import MAX_TRUST, TRUSTED, UNTRUSTED, Chunk, Scope, Turn


def check_limits(turns: Sequence[Turn], *, now: datetime, settings: Settings) -> None:
    """Raises when a turn or its metadata is too long, or it lies too far in the future."""
    for turn in turns:
        if settings.max_future is not None and turn.at and turn.at - now > settings.max_future:
            raise FutureTimeError(turn.at, now=now, allowed=settings.max_future)
        if len(turn.text) > settings.max_text_chars:
            raise InvalidTextError(
                f"text has {len(turn.text)} characters, at most {settings.max_text_chars} are "
                "allowed; split it, or raise Settings.max_text_chars"
            )
        check_metadata_size(turn.metadata, settings=settings)


def check_metadata_size(metadata: Mapping[str, Any], *, settings: Settings) -> None:
    """Raises when the metadata of one message is larger than the settings allow."""
    if metadata and (size := metadata_bytes(metadata)) > settings.max_metadata_bytes:
        raise InvalidInputError(
            f"metadata has {size} bytes of JSON, at most {settings.max_metadata_bytes} are allowed "
            "for one message; keep large values elsewhere, or raise Settings.max_metadata_bytes"
        )


def check_trust(trust: int) -> int:
    """Returns a trust level that can be stored; otherwise raises."""
    if isinstance(trust, bool) or not isinstance(trust, int) or not 0 <= trust <= MAX_TRUST:
        raise InvalidInputError(
            f"trust={trust!r}: pass a whole number from {UNTRUSTED} (untrusted) over {TRUSTED} "
            f"(the default) to {MAX_TRUST}"
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
    """Returns the unrecorded chunks of all turns in order; a turn without a time happened `now`.

    So did one whose time lies ahead, unless the settings take every time as it is: nothing is
    observed before it happens, and it must not win over what is recorded until then.
    """
    check_limits(turns, now=now, settings=settings)
    check_trust(trust)
    chunks = []
    for turn in turns:
        at = turn.at or now
        if settings.max_future is not None:
            at = min(at, now)
        pieces = segment(turn.text, budget=settings.chunk_tokens, count_tokens=count_tokens)
        for number, piece in enumerate(pieces):
            chunks.append(
                Chunk(
                    id=chunk_id(turn, number),
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
