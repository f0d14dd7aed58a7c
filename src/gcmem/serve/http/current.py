"""Pages of the claims that still stand."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice

from gcmem.memory import Memory
from gcmem.serve.http.cursors import claim_cursor_of, claim_place_of
from gcmem.types import ChunkFilter, Claim, Scope

MOST_COUNTED = 1000
"""A scope may have many chunks that wait; counting goes no further than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPage:
    """Some claims, newest first; `next` continues them, and is None at their end.

    `pending` counts the chunks of the scope that were not judged yet: their claims are missing.
    """

    claims: tuple[Claim, ...]
    next: str | None
    pending: int

    def cut(self, count: int) -> ClaimPage:
        """Returns the page with its first claims only."""
        if count >= len(self.claims):
            return self
        following = claim_cursor_of(self.claims[count - 1], self.claims[count])
        return ClaimPage(claims=self.claims[:count], next=following, pending=self.pending)


def current_page(
    memory: Memory,
    *,
    scope: Scope,
    limit: int,
    cursor: str | None = None,
    as_of: datetime | None = None,
) -> ClaimPage:
    """Returns one page. Chunks added between two pages neither repeat nor hide others."""
    after = None if cursor is None else claim_place_of(cursor, memory, scope=scope)
    claims = memory.current(**asdict(scope), as_of=as_of, limit=limit + 1, after=after)
    page = ClaimPage(claims=claims, next=None, pending=waiting_in(memory, scope))
    return page.cut(limit)


def waiting_in(memory: Memory, scope: Scope) -> int:
    """Returns how many chunks of a scope wait to be judged, at most `MOST_COUNTED`.

    `Memory.pending` counts the chunks of everybody, which a bound caller must not learn.
    """
    ledger, judge = memory.store.ledger, memory.judging.id
    assert ledger is not None
    chunks = memory.store.log.scan(ChunkFilter(scope=scope), after_seq=ledger.judged_up_to(judge))
    waiting = 0
    while waiting < MOST_COUNTED and (block := list(islice(chunks, MOST_COUNTED))):
        waiting += len(block) - len(ledger.judged(judge, [chunk.seq or 0 for chunk in block]))
    return min(waiting, MOST_COUNTED)
