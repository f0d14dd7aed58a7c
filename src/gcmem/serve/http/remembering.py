"""Oracles for a server: one that remembers the sets it judged, and one that can't remember any."""

from __future__ import annotations

import uuid
from dataclasses import replace

from gcmem.calls import current_call
from gcmem.protocols import ConflictOracle
from gcmem.types import CandidateSet, Conflict

PER_VECTOR = 8
"""How many candidates or conflicts take as much memory as a vector."""


class RememberingOracle:
    """Judges a set once a scope; asked the same over the same chunks, it answers from memory.

    Scores of pairs are kept by the store already; this spares a busy server the work of finding
    out which pairs matter. Only for chunks of one log: it knows them by their ids.
    """

    def __init__(self, oracle: ConflictOracle) -> None:
        self._oracle = oracle
        self.id = oracle.id

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts of the set."""
        key = (
            "judged",
            candidates.query,
            candidates.options,
            tuple((item.chunk.id, item.relevance) for item in candidates),
        )
        call = current_call()
        known: tuple[Conflict, ...] | None = call.get(key)
        if known is None:
            known = self._oracle.judge(candidates)
            call.put(key, known, weight=1 + (len(candidates) + len(known)) // PER_VECTOR)
        return known


class UnknownDocuments:
    """Gives chunks new random ids before an oracle sees them, and the old ones to its verdicts.

    An oracle may remember verdicts by id. The ids of documents to resolve follow from their texts,
    so without this, a caller could find out which documents another one has sent.
    """

    def __init__(self, oracle: ConflictOracle) -> None:
        self._oracle = oracle
        self.id = oracle.id

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts of the set."""
        known_as = {str(uuid.uuid4()): item.chunk.id for item in candidates}
        items = tuple(
            replace(item, chunk=replace(item.chunk, id=new))
            for new, item in zip(known_as, candidates, strict=True)
        )
        return tuple(
            replace(found, older=known_as[found.older], newer=known_as[found.newer])
            for found in self._oracle.judge(replace(candidates, items=items))
        )
