"""Asks an oracle about whole chunks at read time: the way of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gcmem.calls import as_one_call
from gcmem.languages import looks_english
from gcmem.protocols import ConflictOracle, Ledger
from gcmem.resolve.by_trust import ByTrust
from gcmem.resolve.outcomes import Policy
from gcmem.resolve.persons import with_persons_word
from gcmem.resolve.temporal import temporal_dominance
from gcmem.stopwatch import Stopwatch
from gcmem.types import CandidateSet, Conflict, Resolution


class Resolver:
    """Decides which candidates still hold: the oracle judges them all at once, for one question."""

    def __init__(
        self,
        oracle: ConflictOracle,
        *,
        policy: Policy | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """With a `ledger`, what people said outranks the oracle."""
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
            conflicts: Sequence[Conflict] = self._judge.judge(candidates)
            if self._ledger is not None:
                conflicts = with_persons_word(conflicts, candidates, self._ledger)
        with watch.timing("dominance_ms"):
            resolution = temporal_dominance(
                candidates,
                conflicts,
                max_skew=self.policy.max_skew,
                respect_trust=self.policy.respect_trust,
            )
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
