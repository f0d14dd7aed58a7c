"""The story of the integration tests: one fact changes, an old one stays true."""

from __future__ import annotations

from datetime import UTC, datetime

from gcmem import Memory

QUESTION = "Where do I live?"
STALE = "I live in Porto."
STANDING = "My brother lives in Braga."
CURRENT = "We moved! I no longer live in Porto, I live in Lyon now."
STORY = (
    (STALE, datetime(2025, 1, 9, tzinfo=UTC)),
    (STANDING, datetime(2025, 4, 28, tzinfo=UTC)),
    (CURRENT, datetime(2025, 9, 15, tzinfo=UTC)),
)


def told_memory() -> Memory:
    """A memory with the shipped models that has heard the story from Ana."""
    memory = Memory(":memory:")
    for text, at in STORY:
        memory.add(text, user_id="ana", at=at)
    return memory
