"""Settings: frozen values with checked ranges. Nothing here reads the environment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from gcmem.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a Memory segments, retrieves and resolves; the defaults suit a chat agent."""

    chunk_tokens: int = 200
    """A turn longer than this is split at sentence boundaries."""
    max_text_chars: int = 2_000_000
    """A longer text is refused rather than half stored."""
    max_future: timedelta | None = timedelta(days=1)
    """How far ahead of the clock an event time may lie; None for any."""
    stm_size: int = 10
    """Chunks of a scope in the recency buffer; 0 turns it off."""
    overfetch: int = 2
    """The index is asked for this many times k, so that k live chunks remain after excision."""

    def __post_init__(self) -> None:
        for name, least in (
            ("chunk_tokens", 8),
            ("max_text_chars", 1),
            ("stm_size", 0),
            ("overfetch", 1),
        ):
            if getattr(self, name) < least:
                raise InvalidInputError(f"{name}={getattr(self, name)}: at least {least}")
