"""An oracle that remembers whole sets: the past is immutable, so a verdict on a set is too."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from gcmem.protocols import ConflictOracle
from gcmem.types import CandidateSet, Conflict

CAPACITY = 2048


class RememberingOracle:
    """Judges a set once; asked the same question over the same chunks, it answers from memory.

    Scores of pairs are kept by the store already; this spares a busy server the work of finding
    out which pairs matter. Only for chunks of one log: it knows them by their ids.
    """

    def __init__(self, oracle: ConflictOracle, *, capacity: int = CAPACITY) -> None:
        self._oracle = oracle
        self._capacity = capacity
        self._known: OrderedDict[Hashable, tuple[Conflict, ...]] = OrderedDict()
        self._lock = threading.Lock()
        self.id = oracle.id

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts of the set."""
        key = (
            candidates.query,
            candidates.options,
            tuple((item.chunk.id, item.relevance) for item in candidates),
        )
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        found = self._oracle.judge(candidates)
        with self._lock:
            self._known[key] = found
            while len(self._known) > self._capacity:
                self._known.popitem(last=False)
        return found
