"""Puts what people said above what an oracle found."""

from __future__ import annotations

from collections.abc import Iterable

from gcmem.protocols import WITHDRAWN, Ledger
from gcmem.types import CandidateSet, Conflict, Verdict


def with_persons_word(
    conflicts: Iterable[Conflict], candidates: CandidateSet, ledger: Ledger
) -> list[Conflict]:
    """Returns the conflicts without those of pinned or rejected chunks, with confirmed ones."""
    chunks = {item.chunk.id: item.chunk for item in candidates}
    pinned = ledger.pins(list(chunks))
    last: dict[frozenset[str], Verdict] = {}
    for verdict in ledger.verdicts(list(chunks)):
        if verdict.by == "person" and verdict.newer in chunks:
            last[frozenset((verdict.older, verdict.newer))] = verdict
    said = {pair: verdict for pair, verdict in last.items() if verdict.score != WITHDRAWN}
    found = [c for c in conflicts if frozenset((c.older, c.newer)) not in said]
    found += [
        Conflict(older=v.older, newer=v.newer, score=v.score, oracle=v.oracle)
        for v in said.values()
        if v.score > 0
    ]

    def ends_a_pinned_one(conflict: Conflict) -> bool:
        # An oracle need not say which of the two is older.
        pair = (conflict.older, conflict.newer)
        return any(
            one in pinned and chunks[one].precedes(chunks[other]) is not False
            for one, other in (pair, pair[::-1])
        )

    return [conflict for conflict in found if not ends_a_pinned_one(conflict)]
