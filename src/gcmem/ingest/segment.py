"""Splits a long turn at sentence boundaries, so that the encoder sees all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gcmem.sentences import sentences_of

CountTokens = Callable[[Sequence[str]], list[int]]

CHARS_PER_TOKEN = 8
"""Maximum characters per token of budget: a huge unbroken word may count as one token."""


def segment(text: str, *, budget: int, count_tokens: CountTokens) -> list[str]:
    """Splits the text into pieces, in order, if it exceeds the token budget."""
    text = text.strip()
    max_chars = budget * CHARS_PER_TOKEN
    if len(text) <= max_chars and count_tokens([text])[0] <= budget:
        return [text]
    pieces = [piece for piece in _split(text, max_chars) if piece]
    costs = count_tokens(pieces)
    fitting: list[tuple[str, int]] = []
    for piece, cost in zip(pieces, costs, strict=True):
        fitting.extend([(piece, cost)] if cost <= budget else _halve(piece, budget, count_tokens))
    return list(_pack(fitting, budget=budget, max_chars=max_chars))


def _split(text: str, max_chars: int) -> Iterator[str]:
    for sentence in sentences_of(text):
        while len(sentence) > max_chars:
            cut = sentence.rfind(" ", max_chars // 2, max_chars)
            cut = cut if cut > 0 else max_chars
            yield sentence[:cut].strip()
            sentence = sentence[cut:].strip()
        yield sentence


def _halve(piece: str, budget: int, count_tokens: CountTokens) -> Iterator[tuple[str, int]]:
    """Splits a sentence at the space nearest its middle, again and again until the parts fit."""
    cost = count_tokens([piece])[0]
    middle = len(piece) // 2
    if cost <= budget or middle == 0:
        yield piece, cost
        return
    left, right = piece.rfind(" ", 0, middle), piece.find(" ", middle)
    cuts = [cut for cut in (left, right) if cut > 0]
    cut = min(cuts, key=lambda at: abs(at - middle)) if cuts else middle
    for part in (piece[:cut].strip(), piece[cut:].strip()):
        if part:
            yield from _halve(part, budget, count_tokens)


def _pack(pieces: list[tuple[str, int]], *, budget: int, max_chars: int) -> Iterator[str]:
    """Joins neighbouring pieces while they fit the budget together."""
    current, used = "", 0
    for piece, cost in pieces:
        if current and (used + cost > budget or len(current) + len(piece) >= max_chars):
            yield current
            current, used = "", 0
        current = f"{current} {piece}" if current else piece
        used += cost
    if current:
        yield current
