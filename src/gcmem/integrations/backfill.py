"""Searches that return k chunks where as many live ones are near."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gcmem.filters import MAX_K
from gcmem.memory import Memory
from gcmem.types import SearchResult

WIDER = 4
"""How many times k the second look is: judging more would cost more than a fuller page is worth."""


def search_filled(memory: Memory, query: str, *, k: int, **search: Any) -> SearchResult:
    """Searches, and looks once more and wider where excision has left fewer than k chunks.

    Frameworks take k as what comes back; what a newer chunk contradicts is never used to fill up.
    """
    result = memory.search(query, k=k, **search)
    if not len(result) < k <= len(result.candidates):
        return result
    wider = memory.search(query, k=min(WIDER * k, MAX_K), **search)
    return replace(wider, kept=wider.kept[:k], ranked=wider.ranked[:k])
