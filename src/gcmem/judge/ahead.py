"""Judges new chunks against similar older ones in advance, so that searches find the verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from gcmem.calls import one_call
from gcmem.errors import InvalidInputError
from gcmem.indexed_text import dense_texts
from gcmem.protocols import CandidateResolver, Encoder, Progress, Store
from gcmem.types import Candidate, CandidateSet, Chunk, ChunkFilter

NEIGHBOURS_PER_CHUNK = 8
CHUNKS_PER_PAGE = 64


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
    """Judges the chunks that this oracle has not judged yet and returns the counts.

    Each chunk is compared with the most similar older chunks of its scope; the resolver saves the
    conflicts. An interrupted call loses at most one page: the next call continues after the last
    finished one. Searches work without it and never wait for it.
    """
    if store.ledger is None:
        raise InvalidInputError("this store can't save conflicts, so there is nothing to link")
    done = conflicts = 0
    cursor = store.ledger.judged_up_to(resolver.oracle.id)
    total = sum(1 for _ in store.log.scan(ChunkFilter(), after_seq=cursor, limit=limit))
    while done < total:
        size = min(CHUNKS_PER_PAGE, total - done)
        page = list(store.log.scan(ChunkFilter(), after_seq=cursor, limit=size))
        if not page:
            break
        found = 0
        with one_call():
            for chunk, candidates in _neighbourhoods(store, encoder, page):
                shadows = resolver.resolve(candidates).shadows
                found += sum(shadow.witness.chunk.id == chunk.id for shadow in shadows)
        cursor = max(chunk.seq or 0 for chunk in page)
        store.ledger.set_judged_up_to(resolver.oracle.id, cursor)
        done += len(page)
        conflicts += found
        if progress is not None:
            progress(done, total)
    return Linked(judged=done, conflicts=conflicts)


def _neighbourhoods(
    store: Store, encoder: Encoder, page: list[Chunk]
) -> list[tuple[Chunk, CandidateSet]]:
    """Returns each chunk with a candidate set of it and the most similar older chunks."""
    found = []
    vectors = encoder.encode(dense_texts(page, version=store.index.text_version))
    for chunk, vector in zip(page, vectors, strict=True):
        # Only the chunk's own scope: one user's chunks must not affect another's.
        where = ChunkFilter(scope=chunk.scope, as_of=chunk.at)
        hits = store.index.search(vector[None], k=NEIGHBOURS_PER_CHUNK + 1, where=where)[0]
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
