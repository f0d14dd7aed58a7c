from __future__ import annotations

import pytest

from gcmem.judge import LocalClassifier

PAIR = ("The tap drips.", "Oat milk is on offer.")


def test_a_doubtful_conflict_is_read_again_without_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classifier = LocalClassifier(workers=1)
    read: list[list[int]] = []

    def both(row: list[int]) -> float:
        read.append(row)
        return 0.0 if len(read) == 1 else -9.0

    monkeypatch.setattr(classifier, "_screen_logit", lambda row: 0.0)
    monkeypatch.setattr(classifier, "_combined_logit", both)

    (asked,) = classifier.score("Which milk is there?", [PAIR])
    assert asked < classifier.threshold
    assert len(read[1]) < len(read[0])

    read.clear()
    (unasked,) = classifier.score("", [PAIR])
    assert unasked == pytest.approx(0.5)
    assert len(read) == 1
