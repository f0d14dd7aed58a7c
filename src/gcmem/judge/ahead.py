"""Judges ahead: new chunks against their neighbours, so that searches find the verdicts ready."""

from __future__ import annotations

from dataclasses import dataclass

from gcmem.calls import one_call
from gcmem.errors import InvalidInputError
from gcmem.protocols import CandidateResolver, Encoder, Progress, Store
from gcmem.types import Candidate, CandidateSet, Chunk, ChunkFilter

NEIGHBOURS = 8
PAGE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """How many chunks were judged, and how many conflicts with older chunks were found."""

    judged: int
    conflicts: int


def link(
    store: Store,
    *,
    encoder: Encoder,
    resolver: CandidateResolver,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Linked:
    """Judges the chunks that this oracle has not judged yet and returns what it found.

    Each is held against the older chunks of its scope that are most similar to it; the resolver
    keeps the conflicts it finds. Stopped at any moment, the next call goes on behind the last
    finished page. Searches are right without it, and never wait for it.
    """
    if store.verdicts is None:
        raise InvalidInputError("this store keeps no verdicts, so there is nowhere to link to")
    done = conflicts = 0
    cursor = store.verdicts.linked_up_to(resolver.oracle.id)
    total = sum(1 for _ in store.log.scan(ChunkFilter(), after_seq=cursor, limit=limit))
    while done < total:
        size = min(PAGE, total - done)
        page = list(store.log.scan(ChunkFilter(), after_seq=cursor, limit=size))
        if not page:
            break
        found = 0
        with one_call():
            for chunk, candidates in _neighbourhoods(store, encoder, page):
                shadows = resolver.resolve(candidates).shadows
                found += sum(shadow.witness.chunk.id == chunk.id for shadow in shadows)
        cursor = max(chunk.seq or 0 for chunk in page)
        store.verdicts.set_linked_up_to(resolver.oracle.id, cursor)
        done += len(page)
        conflicts += found
        if progress is not None:
            progress(done, total)
    return Linked(judged=done, conflicts=conflicts)


def _neighbourhoods(
    store: Store, encoder: Encoder, page: list[Chunk]
) -> list[tuple[Chunk, CandidateSet]]:
    """Returns each chunk with a set of it and the older chunks that are most similar to it."""
    found = []
    for chunk, vector in zip(page, encoder.encode([c.text for c in page]), strict=True):
        # Within the chunk's own scope: what another user said is nobody's business here.
        where = ChunkFilter(scope=chunk.scope, as_of=chunk.at)
        hits = store.index.search(vector[None], k=NEIGHBOURS + 1, where=where)[0]
        scores = dict(hits)
        near = [c for c in store.log.get(list(scores)).values() if c.scope == chunk.scope]
        items = [
            Candidate(chunk=c, relevance=scores[c.id], origin="mtm")
            for c in near
            if c.id == chunk.id or c.precedes(chunk)
        ]
        if chunk.id not in scores:
            items.append(Candidate(chunk=chunk, relevance=1.0, origin="mtm"))
        found.append((chunk, CandidateSet(query="", items=tuple(items))))
    return found
