"""κ, then Φ_T, then the policy: the one place where they are put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from gcmem.calls import as_one_call
from gcmem.protocols import ConflictOracle, VerdictCache
from gcmem.resolve.by_trust import ByTrust
from gcmem.resolve.temporal import temporal_dominance
from gcmem.stopwatch import Stopwatch
from gcmem.types import CandidateSet, Conflict, Resolution, Shadow


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a resolution respects besides time."""

    max_skew: timedelta | None = None
    """How far two writers' clocks may disagree before their order is doubted; None trusts all."""
    respect_trust: bool = False
    """Whether a chunk may only shadow chunks that are trusted no more than it is."""
    removes: bool = True
    """Whether shadows are left out of `kept`. Otherwise they are only named."""


class Resolver:
    """Decides which candidates still hold. Every caller that judges goes through it."""

    def __init__(
        self,
        oracle: ConflictOracle,
        *,
        policy: Policy | None = None,
        verdicts: VerdictCache | None = None,
    ) -> None:
        """With `verdicts`, the conflicts found are kept there, for later searches to follow."""
        self.oracle = oracle
        self.policy = policy or Policy()
        self._verdicts = verdicts
        self._judge = ByTrust(oracle) if self.policy.respect_trust else oracle

    @as_one_call
    def resolve(self, candidates: CandidateSet, *, watch: Stopwatch | None = None) -> Resolution:
        """Splits the candidates into those that hold and those that a newer one contradicts."""
        watch = watch or Stopwatch()
        with watch.timing("conflict_ms"):
            conflicts = self._judge.judge(candidates)
        with watch.timing("dominance_ms"):
            resolution = temporal_dominance(
                candidates,
                conflicts,
                max_skew=self.policy.max_skew,
                respect_trust=self.policy.respect_trust,
            )
        if self._verdicts is not None and resolution.shadows:
            self._verdicts.link([edge_of(shadow) for shadow in resolution.shadows])
        return resolution if self.policy.removes else replace(resolution, kept=candidates.items)


def edge_of(shadow: Shadow) -> Conflict:
    """Returns the verdict behind a shadow, from the old chunk to its witness."""
    return replace(shadow.conflict, older=shadow.candidate.chunk.id, newer=shadow.witness.chunk.id)
