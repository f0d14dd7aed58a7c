"""Puts what people said above what an oracle found."""

from __future__ import annotations

from collections.abc import Container, Iterable

from gcmem.protocols import WITHDRAWN, Ledger
from gcmem.types import CandidateSet, Conflict, Verdict

Pair = tuple[str, str]


def last_words(verdicts: Iterable[Verdict], ids: Container[str]) -> dict[Pair, Verdict]:
    """Returns the last word of a person on each pair of these chunks, older first."""
    said = {
        (verdict.older, verdict.newer): verdict
        for verdict in verdicts
        if verdict.by == "person" and verdict.newer in ids
    }
    return {pair: verdict for pair, verdict in said.items() if verdict.score != WITHDRAWN}


def with_persons_word(
    conflicts: Iterable[Conflict], candidates: CandidateSet, ledger: Ledger
) -> list[Conflict]:
    """Returns the conflicts without those of pinned or rejected chunks, with confirmed ones."""
    chunks = {item.chunk.id: item.chunk for item in candidates}
    pinned = ledger.pins(list(chunks))
    said = last_words(ledger.verdicts(list(chunks)), chunks)
    # An oracle need not say which of the two is older.
    found = [c for c in conflicts if said.keys().isdisjoint(_both_ways(c))]
    found += [
        Conflict(older=v.older, newer=v.newer, score=v.score, oracle=v.oracle)
        for v in said.values()
        if v.score > 0
    ]

    def ends_a_pinned_one(conflict: Conflict) -> bool:
        return any(
            one in pinned and chunks[one].precedes(chunks[other]) is not False
            for one, other in _both_ways(conflict)
        )

    return [conflict for conflict in found if not ends_a_pinned_one(conflict)]


def _both_ways(conflict: Conflict) -> tuple[Pair, Pair]:
    return (conflict.older, conflict.newer), (conflict.newer, conflict.older)
