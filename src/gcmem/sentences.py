"""Splits texts into sentences and recognizes questions."""

from __future__ import annotations

import re

SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])|\n+")
QUESTION_END = re.compile(r"[?？][^\w\s]*$")


def sentences_of(text: str) -> list[str]:
    """Returns the sentences of a text, in order."""
    return [sentence for part in SENTENCE_END.split(text) if (sentence := part.strip())]


def states_something(text: str) -> bool:
    """Returns whether a text has a sentence that is not a question; questions state no fact."""
    return any(not QUESTION_END.search(sentence) for sentence in sentences_of(text))
