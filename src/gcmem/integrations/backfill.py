"""Searches that return k chunks wherever k live ones can be found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gcmem.filters import MAX_K
from gcmem.memory import Memory
from gcmem.types import SearchResult


def search_filled(memory: Memory, query: str, *, k: int, **search: Any) -> SearchResult:
    """Searches wider until k chunks remain after excision, or the memory has no more.

    Frameworks take k as what comes back; what a newer chunk contradicts is never used to fill up.
    """
    wide = k
    result = memory.search(query, k=k, **search)
    while len(result) < k <= len(result.candidates) and wide < MAX_K:
        wide = min(2 * wide, MAX_K)
        wider = memory.search(query, k=wide, **search)
        if len(wider.candidates) <= len(result.candidates):
            break
        result = replace(wider, kept=wider.kept[:k], ranked=wider.ranked[:k])
    return result
