"""Combines κ, Φ_T and the policy. No other module does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from gcmem.calls import as_one_call
from gcmem.languages import looks_english
from gcmem.protocols import ConflictOracle, Ledger
from gcmem.resolve.by_trust import ByTrust
from gcmem.resolve.temporal import temporal_dominance
from gcmem.stopwatch import Stopwatch
from gcmem.types import CandidateSet, Conflict, Resolution, Shadow


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of a resolution besides time."""

    max_skew: timedelta | None = None
    """Maximum disagreement of two writers' clocks, or None; beyond it a pair is undecided."""
    respect_trust: bool = False
    """Whether a chunk may shadow only chunks with the same trust or less."""
    removes: bool = True
    """Whether shadows are left out of `kept`. Otherwise they are only reported."""


class Resolver:
    """Decides which candidates still hold. Every search, answer and link uses it."""

    def __init__(
        self,
        oracle: ConflictOracle,
        *,
        policy: Policy | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """Saves the conflicts it finds in `ledger`, if given, for later searches."""
        self.oracle = oracle
        self.policy = policy or Policy()
        self._ledger = ledger
        self._judge = ByTrust(oracle) if self.policy.respect_trust else oracle

    @as_one_call
    def resolve(self, candidates: CandidateSet, *, watch: Stopwatch | None = None) -> Resolution:
        """Splits the candidates into those that hold and those that a newer chunk contradicts.

        If the oracle reads English alone, texts in other languages are reported, but never removed.
        """
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
        if self._ledger is not None and resolution.shadows:
            self._ledger.record([edge_of(shadow) for shadow in resolution.shadows])
        if not self.policy.removes:
            return replace(resolution, kept=candidates.items)
        return self._without_guesses(candidates, resolution)

    def _without_guesses(self, candidates: CandidateSet, resolution: Resolution) -> Resolution:
        """Keeps what a model that reads English alone has only guessed about."""
        if not is_english_only(self.oracle):
            return resolution
        guessed = {
            shadow.candidate.chunk.id
            for shadow in resolution.shadows
            if not all(looks_english(i.chunk.text) for i in (shadow.candidate, shadow.witness))
        }
        if not guessed:
            return resolution
        kept = guessed | {item.chunk.id for item in resolution.kept}
        return replace(resolution, kept=tuple(i for i in candidates.items if i.chunk.id in kept))


def is_english_only(oracle: ConflictOracle) -> bool:
    """Returns whether an oracle says that it reads English alone, like the shipped one."""
    return getattr(oracle, "language", None) == "en"


def edge_of(shadow: Shadow) -> Conflict:
    """Returns the conflict behind a shadow: `older` is the shadowed chunk, `newer` its witness."""
    return replace(shadow.conflict, older=shadow.candidate.chunk.id, newer=shadow.witness.chunk.id)
