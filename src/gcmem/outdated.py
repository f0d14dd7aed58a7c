"""Finds outdated chunks from the conflicts saved in the store, without judging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gcmem.protocols import Store
from gcmem.types import Chunk, ChunkFilter

NO_QUESTION = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The newer chunk of a saved conflict; the score is known only if no question was asked."""

    chunk: Chunk
    score: float | None
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
    verdicts = store.verdicts
    if verdicts is None:
        return {}
    trust = {chunk.id: chunk.trust if respect_trust else 0 for chunk in chunks}
    edges = verdicts.witnesses(oracle, list(trust))
    ends = store.log.get(list(dict.fromkeys(w for newer in edges.values() for w in newer)))
    newest: dict[str, Chunk] = {}
    for older, newer in edges.items():
        seen = [
            ends[end]
            for end in newer
            if end in ends and where.admits(ends[end]) and ends[end].trust >= trust[older]
        ]
        if seen:
            newest[older] = max(seen, key=lambda c: (c.at is not None, c.at, c.seq))
    pairs = [(older, chunk.id) for older, chunk in newest.items()]
    scores = verdicts.get(oracle, NO_QUESTION, pairs)
    return {
        older: Witness(chunk=newest[older], score=scores.get((older, newer)), oracle=oracle)
        for older, newer in pairs
    }


def judged_up_to(store: Store, *, oracle: str) -> int:
    """Returns the last sequence number that `link` has judged; 0 if it never ran."""
    return 0 if store.verdicts is None else store.verdicts.linked_up_to(oracle)
