"""Sentences: where a text can be cut, and which of its parts only ask."""

from __future__ import annotations

import re

END = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])|\n+")
ASKS = re.compile(r"[?？][^\w\s]*$")


def sentences_of(text: str) -> list[str]:
    """Returns the sentences of a text, in order."""
    return [sentence for part in END.split(text) if (sentence := part.strip())]


def states_something(text: str) -> bool:
    """Tells whether a text does more than ask: a question is no fact, and contradicts none."""
    return any(not ASKS.search(sentence) for sentence in sentences_of(text))
