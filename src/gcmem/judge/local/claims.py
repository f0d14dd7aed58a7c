"""The shipped κ as a judge of claims."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.judge.recipe import ClaimSettings, describe, shipped_recipe
from gcmem.protocols import PairClassifier, QuickClassifier, Reads, Ruling
from gcmem.types import Claim, JudgeKind


class LocalJudge:
    """Reads two claims with a pair classifier, by default without a question."""

    kind: JudgeKind = "model"

    def __init__(self, classifier: PairClassifier, settings: ClaimSettings | None = None) -> None:
        """`settings` defaults to those of the shipped model."""
        self.settings = settings or shipped_recipe().claims
        self._classifier = classifier
        self.language: str | None = getattr(classifier, "language", None)
        reads, shipped = map(_read_by, (self.settings, shipped_recipe().claims))
        self.id = classifier.id if reads == shipped else f"{classifier.id}[reads={reads}]"

    @property
    def reads(self) -> Reads:
        """Which claims near a new one it reads."""
        return self.settings.reads

    @property
    def sure(self) -> float:
        """From this score on, the older claim counts as outdated."""
        return self.settings.sure

    @property
    def likely(self) -> float:
        """From this score on, the older claim is doubtful."""
        return self.settings.likely

    @property
    def floor(self) -> float:
        """Rulings below this score are not kept."""
        return self.settings.floor

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        """Returns one ruling per (older, newer) pair."""
        texts = [(older.text, newer.text) for older, newer in pairs]
        if question or not isinstance(self._classifier, QuickClassifier):
            return [Ruling(score) for score in self._classifier.score(question, texts)]
        scores = self._classifier.glance(question, texts)
        promising = [n for n, score in enumerate(scores) if score >= self.settings.promising]
        read = self._classifier.score(question, [texts[n] for n in promising])
        for number, score in zip(promising, read, strict=True):
            scores[number] = score
        return [Ruling(score) for score in scores]


def _read_by(settings: ClaimSettings) -> str:
    return f"{describe(settings.reads)} {settings.promising:g}"
