"""Settings: frozen values with checked ranges. Nothing here reads the environment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

from gcmem.errors import InvalidInputError
from gcmem.types import Strategy, check_choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a Memory segments, retrieves and resolves; the defaults suit a chat agent."""

    chunk_tokens: int = 200
    """A turn longer than this is split at sentence boundaries."""
    max_text_chars: int = 2_000_000
    """A longer text is refused rather than half stored."""
    max_metadata_bytes: int = 1_048_576
    """How much JSON the metadata of one message may be; every chunk of the message carries it."""
    max_future: timedelta | None = timedelta(days=1)
    """How far ahead of the clock an event time may lie: further is refused, less is stored as now.
    None takes every event time as it is. Then what is dated ahead wins over all that is recorded
    until that day, so allow it only to writers that you trust."""
    max_skew: timedelta | None = timedelta(minutes=5)
    """How far the clocks of two writers may disagree: up to this, what is said now comes after all
    that was recorded before; beyond it, the order of their chunks is doubted. None trusts every
    clock."""
    strategy: Strategy = "stratified"
    """How candidates are found. `dense` takes the k most similar chunks. `paper` adds the recency
    buffer to them, as the paper does. `stratified` weighs `overfetch` times k candidates: the most
    similar, the frontier and the recency buffer. On the frontier a chunk competes only with those
    that came after it, so the newest state of a topic is found however long the history is."""
    frontier: int = 2
    """A chunk is on the frontier if fewer than this many newer chunks are at least as similar."""
    stm_size: int = 10
    """Chunks of a scope in the recency buffer."""
    overfetch: int = 3
    """`stratified` weighs this many times k candidates, so that k remain after some are removed."""

    respect_trust: bool = False
    """Whether a chunk may only shadow chunks that are trusted no more than it is."""

    def __post_init__(self) -> None:
        for name, least in (
            ("chunk_tokens", 8),
            ("max_text_chars", 1),
            ("max_metadata_bytes", 2),
            ("frontier", 1),
            ("stm_size", 0),
            ("overfetch", 1),
        ):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InvalidInputError(f"{name}={value!r}: pass a whole number from {least}")
        for name in ("max_future", "max_skew"):
            value = getattr(self, name)
            if value is None or (isinstance(value, timedelta) and value >= timedelta(0)):
                continue
            raise InvalidInputError(f"{name}={value!r}: pass a duration from 0, or None")
        if not isinstance(self.respect_trust, bool):
            raise InvalidInputError(f"respect_trust={self.respect_trust!r}: pass True or False")
        check_choice(self.strategy, name="strategy", allowed=get_args(Strategy))
