"""Lets any conflict oracle judge claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gcmem.protocols import ConflictOracle, Reads, Ruling
from gcmem.types import Candidate, CandidateSet, Claim, JudgeKind

EVERY_NEIGHBOUR = Reads(most=20, similarity=-1.0)


class OracleJudge:
    """Puts a claim before an oracle together with the older ones, as if they were chunks.

    What the oracle calls a conflict is sure; it has no doubts.
    """

    kind: JudgeKind = "model"
    reads = EVERY_NEIGHBOUR
    sure = likely = floor = 0.0

    def __init__(self, oracle: ConflictOracle) -> None:
        self._oracle = oracle
        self.id = oracle.id
        self.language: str | None = getattr(oracle, "language", None)

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        """Returns one ruling per pair; a pair that the oracle does not name scores -1."""
        claims = {claim.id: claim for pair in pairs for claim in pair}
        items = tuple(
            Candidate(
                chunk=replace(claim.chunk, id=claim_id, text=claim.text),
                relevance=1.0,
                origin="mtm",
            )
            for claim_id, claim in claims.items()
        )
        if not items:
            return []
        conflicts = self._oracle.judge(CandidateSet(query=question, items=items))
        scores = {frozenset((c.older, c.newer)): c.score for c in conflicts}
        return [Ruling(scores.get(frozenset((older.id, newer.id)), -1.0)) for older, newer in pairs]
