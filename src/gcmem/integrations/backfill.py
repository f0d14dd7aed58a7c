"""Searches again if removing stale chunks left fewer than k."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gcmem.filters import MAX_K
from gcmem.memory import Memory
from gcmem.types import SearchResult

WIDEN_FACTOR = 4
"""The second search asks for this many times k. A larger factor costs more than it is worth."""


def search_filled(memory: Memory, query: str, *, k: int, **search: Any) -> SearchResult:
    """Searches, and searches once more with a larger k if fewer than k chunks are left.

    Frameworks expect k results. Contradicted chunks are never used to fill up.
    """
    result = memory.search(query, k=k, **search)
    if not len(result) < k <= len(result.candidates):
        return result
    wider = memory.search(query, k=min(WIDEN_FACTOR * k, MAX_K), **search)
    return replace(wider, kept=wider.kept[:k], ranked=wider.ranked[:k])
