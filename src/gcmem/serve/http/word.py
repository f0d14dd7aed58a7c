"""A person's word about memories: pins and verdicts, as far as a caller may give them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from gcmem.errors import ForbiddenError, TrustError
from gcmem.memory import Memory
from gcmem.types import Scope, Verdict

Word = Literal["confirm", "reject", "undo"]
ANYBODY = "user"
"""Whose word it is if nobody says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Whose word it is, and about which memories: of this scope, and of at most this trust."""

    by: str = ANYBODY
    scope: Scope
    max_trust: int | None = None


def set_pin(memory: Memory, memory_id: str, *, pinned: bool, speaker: Speaker) -> None:
    """Pins a memory, or takes the pin back."""
    if speaker.max_trust is not None:
        # A pinned lie would outlive the truth that a trusted source tells later.
        raise ForbiddenError(
            "a pin outranks what trusted sources say, so an untrusted key or server may not set or "
            "take back one"
        )
    change = memory.pin if pinned else memory.unpin
    change(memory_id, by=speaker.by, **asdict(speaker.scope))


def say(
    memory: Memory, word: Word, older: str, newer: str, *, reason: str, speaker: Speaker
) -> Verdict:
    """Records what a person says about two memories; outranks every model.

    Raises `TrustError` if one of the two is trusted more than the speaker: a word about it could
    remove what is trusted, or keep what a trusted memory ended.
    """
    scope = asdict(speaker.scope)
    if speaker.max_trust is not None:
        for chunk in (memory.get(older, **scope), memory.get(newer, **scope)):
            if chunk.trust > speaker.max_trust:
                raise TrustError(chunk.id, trust=chunk.trust, allowed=speaker.max_trust)
    record = {"confirm": memory.confirm, "reject": memory.reject, "undo": memory.undo}[word]
    return record(older, newer, by=speaker.by, reason=reason, **scope)
