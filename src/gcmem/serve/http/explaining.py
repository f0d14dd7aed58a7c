"""Says why a chunk is no longer true: the newer chunk that contradicts it, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from gcmem.memory import Memory
from gcmem.types import Candidate, Chunk, Conflict, Resolution, Scope, SearchResult, Shadow

NEAREST = 20


def explain(
    memory: Memory,
    chunk: Chunk,
    *,
    scope: Scope,
    question: str | None = None,
    options: Sequence[str] = (),
) -> tuple[Shadow | None, tuple[Conflict, ...]]:
    """Returns the shadow of a chunk, or None if it is live, and the conflicts that it outranks.

    The chunk is compared with the results of a search for the question, then with its nearest
    chunks. A search also returns known contradictions of what it finds.
    """
    outranked: dict[str, Conflict] = {}
    for query in (question, chunk.text):
        if query is None:
            continue
        found = memory.search(query, k=NEAREST, options=options, **asdict(scope))
        judged = _judged_with(chunk, found, memory)
        shadow = next((s for s in judged.shadows if s.candidate.chunk.id == chunk.id), None)
        if shadow is not None:
            return shadow, ()
        outranked |= {c.newer: c for c in judged.outranked if c.older == chunk.id}
    return None, tuple(outranked.values())


def _judged_with(chunk: Chunk, found: SearchResult, memory: Memory) -> SearchResult | Resolution:
    """Returns the search result, or a new resolution if the chunk was not in it."""
    if any(item.chunk.id == chunk.id for item in found.candidates):
        return found
    added = Candidate(chunk=chunk, relevance=1.0, origin="edge")
    candidates = replace(found.candidates, items=(added, *found.candidates.items))
    return memory.resolve(candidates)
