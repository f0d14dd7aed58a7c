"""An oracle that answers from labels, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from gcmem.types import CandidateSet, Conflict


class GoldOracle:
    """Reports labelled pairs of chunk ids, in either order, with score 1."""

    id = "gold@1"

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs = {frozenset(pair) for pair in pairs}

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the labelled pairs whose two chunks are in the set."""
        ids = [item.chunk.id for item in candidates]
        return tuple(
            Conflict(older=a, newer=b, score=1.0, oracle=self.id)
            for a, b in combinations(ids, 2)
            if frozenset((a, b)) in self._pairs
        )
