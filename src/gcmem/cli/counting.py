"""Numbers with their nouns: "1 chunk", "12 chunks", "3 of 12 chunks"."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Returns the number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def part(number: int, total: int, noun: str) -> str:
    """Returns "3 of 12 chunks", or "12 chunks" if none is left out."""
    return counted(total, noun) if number == total else f"{number:,} of {counted(total, noun)}"


def verb(number: int, singular: str, plural: str) -> str:
    """Returns the form of a verb that fits the number: "1 was", "2 were"."""
    return f"{number:,} {singular if number == 1 else plural}"
