"""Checks generated lines: do they name a label, and do they repeat an earlier line?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

NEAR = 0.5
"""Lines with at least this share of common word pairs are duplicates; no shipped ones are."""
PREFIX_CHARS = 5
"""Stems of at least this length also match longer words: "retir" matches "retirement"."""
STOP_WORDS = frozenset(
    "a an and any at based between by does for from full has have in is long more most much no non "
    "none not of off on one only or other out over part self than the their time to under up very "
    "well with without".split()
)
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def words(text: str) -> list[str]:
    """Returns the words of a text in lower case, with straight apostrophes."""
    return WORD.findall(text.casefold().replace("’", "'"))


def stem(word: str) -> str:
    """Removes common English endings, so that forms of one word match."""
    word = word.removesuffix("'s")
    for ending in ("ing", "ers", "ed", "er", "ies", "es", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


class LabelCheck:
    """Checks whether a line names a state's label, in any word form."""

    def __init__(self, label: str, *, states: Sequence[str]) -> None:
        """`states` are all labels; stems that all of them share are ignored."""
        shared = set.intersection(*(_content(state) for state in states))
        self._distinctive = _content(label) - shared
        self._phrase = [stem(word) for word in words(label)]

    def names(self, text: str) -> bool:
        """Returns whether the line contains a distinctive word of the label, or the whole label."""
        found = [stem(word) for word in words(text)]
        if any(_matches(one, label_stem) for one in found for label_stem in self._distinctive):
            return True
        size = len(self._phrase)
        starts = range(len(found) - size + 1) if size else ()
        return any(found[n : n + size] == self._phrase for n in starts)


def _content(label: str) -> set[str]:
    return {stem(word) for word in words(label) if word not in STOP_WORDS}


def _matches(word: str, label_stem: str) -> bool:
    return word == label_stem or (len(label_stem) >= PREFIX_CHARS and word.startswith(label_stem))


class Seen:
    """Remembers lines and recognises near-duplicates."""

    def __init__(self) -> None:
        self._shingles: list[frozenset[tuple[str, ...]]] = []

    def add(self, text: str) -> None:
        """Remembers a line."""
        self._shingles.append(_shingles(text))

    def has_near_duplicate(self, text: str) -> bool:
        """Returns whether a remembered line is a near-duplicate of this one."""
        one = _shingles(text)
        return any(len(one & other) >= NEAR * len(one | other) for other in self._shingles)


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    found = words(text)
    pairs: list[tuple[str, ...]] = list(pairwise(found))
    # A text without words is compared as a whole.
    return frozenset(pairs or [tuple(found) or (text,)])
