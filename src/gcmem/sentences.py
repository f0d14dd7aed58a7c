"""Splits texts into sentences and clauses, and recognizes questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])|\n+")
QUESTION_END = re.compile(r"[?？][^\w\s]*$")

LONG_SENTENCE_WORDS = 16
"""A sentence with more words is split into clauses."""
LEAST_CLAUSE_WORDS = 4
# A clause starts behind a strong mark, or where a conjunction brings a subject of its own.
SUBJECT = (
    r"(?:i|i'm|i've|i'd|i'll|im|ive|we|we're|we've|they|they're|he|he's|she|she's|it|it's|its|you|"
    r"my|our|his|her|their|your|the|this|that|there|there's|these|those|[A-Z]\w+)\b"
)
CLAUSE_START = re.compile(
    r"(?:;\s+|\s+[-–—]+\s+|:\s+(?=[A-Z])|,?\s+(?=(?:and|but|so|because|cause|cos|since|though|"
    rf"although|while|plus|also|except|btw|anyway)\s+(?i:{SUBJECT}))|,\s+(?=(?i:{SUBJECT})\s+\w+))"
)

Span = tuple[int, int]


def sentences_of(text: str) -> list[str]:
    """Returns the sentences of a text, in order."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[Span]:
    """Returns where the sentences of a text start and end, in order."""
    return list(_spans(text, 0, len(text), SENTENCE_END))


def clause_spans(text: str) -> list[Span]:
    """Returns where sentences start and end; long ones are split into clauses."""
    found: list[Span] = []
    for start, end in sentence_spans(text):
        if len(text[start:end].split()) <= LONG_SENTENCE_WORDS:
            found.append((start, end))
        else:
            found += _joined(text, list(_spans(text, start, end, CLAUSE_START)))
    return found


def _spans(text: str, start: int, end: int, border: re.Pattern[str]) -> Iterator[Span]:
    """Yields the pieces between borders, without the white space around them."""
    ends = [start]
    for match in border.finditer(text, start, end):
        ends += [match.start(), match.end()]
    for left, right in pairwise([*ends, end]):
        piece = text[left:right]
        if stripped := piece.strip():
            first = left + piece.index(stripped[0])
            yield first, first + len(stripped)


def _joined(text: str, pieces: list[Span]) -> list[Span]:
    """Joins a piece that is too short to say something to the one before it."""
    found: list[Span] = []
    for start, end in pieces:
        if found and (
            len(text[start:end].split()) < LEAST_CLAUSE_WORDS
            or len(text[slice(*found[-1])].split()) < LEAST_CLAUSE_WORDS
        ):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def is_question(sentence: str) -> bool:
    """Returns whether a sentence ends with a question mark."""
    return bool(QUESTION_END.search(sentence))


def states_something(text: str) -> bool:
    """Returns whether a text has a sentence that is not a question; questions state no fact."""
    return any(not is_question(sentence) for sentence in sentences_of(text))
