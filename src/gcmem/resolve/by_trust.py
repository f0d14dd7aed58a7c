"""κ in a set whose sources are not all trusted alike."""

from __future__ import annotations

from dataclasses import replace

from gcmem.protocols import ConflictOracle
from gcmem.types import CandidateSet, Conflict


class ByTrust:
    """Judges each pair of chunks without those that are trusted less than both of them.

    An oracle that sees a whole set lets every chunk influence every verdict, and one that stops
    at the first witness would stop at an untrusted one. So it is asked once for each trust level,
    about the chunks of that level and above: what is trusted less can't change what it says of
    those. With one level this is the oracle itself.
    """

    def __init__(self, oracle: ConflictOracle) -> None:
        self._oracle = oracle
        self.id = oracle.id

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts, each from the judgement in which its less trusted end is least."""
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
