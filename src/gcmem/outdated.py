"""Finds outdated chunks from the conflicts saved in the store, without judging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gcmem.protocols import Store
from gcmem.types import Chunk, ChunkFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The newer chunk of a saved conflict."""

    chunk: Chunk
    score: float
    oracle: str

    @property
    def id(self) -> str:
        """The id of the newer chunk."""
        return self.chunk.id


def known_witnesses(
    store: Store,
    chunks: Sequence[Chunk],
    *,
    oracle: str,
    where: ChunkFilter,
    respect_trust: bool,
) -> dict[str, Witness]:
    """Returns, by chunk id, the newest visible chunk that is known to contradict it."""
    if store.ledger is None:
        return {}
    trust = {chunk.id: chunk.trust if respect_trust else 0 for chunk in chunks}
    known = store.ledger.conflicts(oracle, list(trust))
    ends = store.log.get(list(dict.fromkeys(c.newer for cs in known.values() for c in cs)))
    found: dict[str, Witness] = {}
    for older, conflicts in known.items():
        scores = {c.newer: c.score for c in conflicts}
        seen = [
            ends[end]
            for end in scores
            if end in ends and where.admits(ends[end]) and ends[end].trust >= trust[older]
        ]
        if seen:
            newest = max(seen, key=lambda c: (c.at is not None, c.at, c.seq))
            found[older] = Witness(chunk=newest, score=scores[newest.id], oracle=oracle)
    return found


def judged_up_to(store: Store, *, oracle: str) -> int:
    """Returns the last sequence number that `link` has judged; 0 if it never ran."""
    return 0 if store.ledger is None else store.ledger.judged_up_to(oracle)
