"""Says why a chunk is no longer true: the newer chunk that contradicts it, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from gcmem.memory import Memory
from gcmem.types import Candidate, Chunk, Conflict, Doubt, Resolution, Scope, SearchResult, Shadow

NEAREST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a chunk or a sentence of it is outdated, or may be; and the conflicts it outranks."""

    shadow: Shadow | None = None
    doubt: Doubt | None = None
    outranked: tuple[Conflict, ...] = ()

    @property
    def is_live(self) -> bool:
        """Whether at least a part of the chunk still holds."""
        return self.shadow is None or not self.shadow.is_whole


def explain(
    memory: Memory,
    chunk: Chunk,
    *,
    scope: Scope,
    question: str | None = None,
    options: Sequence[str] = (),
) -> Explanation:
    """Returns what speaks against a chunk.

    The chunk is compared with the results of a search for the question, then with its nearest
    chunks. A search also returns known contradictions of what it finds.
    """
    doubt: Doubt | None = None
    outranked: dict[str, Conflict] = {}
    for query in (question, chunk.text):
        if query is None:
            continue
        found = memory.search(query, k=NEAREST, options=options, **asdict(scope))
        judged = _judged_with(chunk, found, memory)
        shadows = [s for s in judged.shadows if s.candidate.chunk.id == chunk.id]
        if shadows:
            return Explanation(shadow=shadows[0])
        doubts = (d for d in judged.doubtful if d.candidate.chunk.id == chunk.id)
        doubt = doubt or next(doubts, None)
        outranked |= {c.newer: c for c in judged.outranked if c.older == chunk.id}
    return Explanation(doubt=doubt, outranked=tuple(outranked.values()))


def _judged_with(chunk: Chunk, found: SearchResult, memory: Memory) -> SearchResult | Resolution:
    """Returns the search result, or a new resolution if the chunk was not in it."""
    if any(item.chunk.id == chunk.id for item in found.candidates):
        return found
    added = Candidate(chunk=chunk, relevance=1.0, origin="edge")
    candidates = replace(found.candidates, items=(added, *found.candidates.items))
    return memory.resolve(candidates)
