"""An oracle that remembers whole sets: the past is immutable, so a verdict on a set is too."""

from __future__ import annotations

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
