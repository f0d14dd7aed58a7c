"""Oracles for a server: one caches whole sets, the other hides ids from caches."""

from __future__ import annotations

import uuid
from dataclasses import replace

from gcmem.calls import current_call
from gcmem.protocols import ConflictOracle
from gcmem.types import CandidateSet, Conflict

PER_VECTOR = 8
"""Candidates or conflicts that take as much memory as one vector."""


class RememberingOracle:
    """Caches verdicts: the same question over the same chunks is judged once per scope.

    The store already keeps the scores of pairs; this also saves the choice of pairs. Use it only
    for chunks of one log, since it identifies them by id.
    """

    def __init__(self, oracle: ConflictOracle) -> None:
        self._oracle = oracle
        self.id = oracle.id
        self.language: str | None = getattr(oracle, "language", None)

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
    """Hides the ids of chunks from an oracle behind random ones.

    An oracle may cache verdicts by id. The ids of documents are derived from their texts, so
    without this a caller could find out which documents another caller has sent.
    """

    def __init__(self, oracle: ConflictOracle) -> None:
        self._oracle = oracle
        self.id = oracle.id
        self.language: str | None = getattr(oracle, "language", None)

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
