"""The rows of the three tasks that a scorer learns."""

from __future__ import annotations

from dataclasses import dataclass

MAX_OPTIONS = 5
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class PairRow:
    """Question and two texts; the label is None where only a teacher knows."""

    texts: tuple[str, str, str]
    label: float | None


@dataclass(frozen=True, slots=True)
class StanceRow:
    """Question, answer options and a sentence.

    The label is the option's number, None for none, UNKNOWN where only a teacher knows.
    """

    question: str
    options: tuple[str, ...]
    sentence: str
    label: int | None


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """Question and a sentence; the label says whether the sentence answers it."""

    question: str
    sentence: str
    label: float
