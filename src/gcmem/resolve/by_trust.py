"""Keeps untrusted chunks from influencing verdicts on more trusted ones."""

from __future__ import annotations

from dataclasses import replace

from gcmem.protocols import ConflictOracle
from gcmem.types import CandidateSet, Conflict


class ByTrust:
    """Judges each pair of chunks without the chunks that are trusted less than both.

    An oracle that sees a whole set may let any chunk influence any verdict, or stop at an untrusted
    witness. So it is asked once per trust level, about the chunks of that level and above. With
    one level it is asked once, as usual.
    """

    def __init__(self, oracle: ConflictOracle) -> None:
        self._oracle = oracle
        self.id = oracle.id

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts, each judged at the trust level of its less trusted chunk."""
        trust = {item.chunk.id: item.chunk.trust for item in candidates}
        levels = sorted(set(trust.values()), reverse=True)
        if len(levels) < 2:
            return self._oracle.judge(candidates)
        found: list[Conflict] = []
        for level in levels:
            items = tuple(item for item in candidates if item.chunk.trust >= level)
            found += [
                conflict
                for conflict in self._oracle.judge(replace(candidates, items=items))
                if min(trust[conflict.older], trust[conflict.newer]) == level
            ]
        return tuple(found)
