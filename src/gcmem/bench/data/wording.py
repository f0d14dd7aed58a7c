"""How generated lines are checked by code: is a label in them, and were they there before?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

NEAR = 0.5
"""From this share of common word pairs on, two lines are the same; no two shipped ones are."""
PREFIX_CHARS = 5
"""A stem this long also finds longer words: "retir" is in "retirement"."""
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
    """Cuts the common English endings off a word, so that forms of one word meet."""
    word = word.removesuffix("'s")
    for ending in ("ing", "ers", "ed", "er", "ies", "es", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


class LabelCheck:
    """Finds the label of a state in a line, in any of its forms."""

    def __init__(self, label: str, *, states: Sequence[str]) -> None:
        """`states` are all the labels: a stem that all of them share tells none apart."""
        shared = set.intersection(*(_content(state) for state in states))
        self._telling = _content(label) - shared
        self._phrase = [stem(word) for word in words(label)]

    def names(self, text: str) -> bool:
        """Tells whether a telling word of the label, or the whole of it, is in the line."""
        found = [stem(word) for word in words(text)]
        if any(_meets(one, label_stem) for one in found for label_stem in self._telling):
            return True
        size = len(self._phrase)
        starts = range(len(found) - size + 1) if size else ()
        return any(found[n : n + size] == self._phrase for n in starts)


def _content(label: str) -> set[str]:
    return {stem(word) for word in words(label) if word not in STOP_WORDS}


def _meets(word: str, label_stem: str) -> bool:
    return word == label_stem or (len(label_stem) >= PREFIX_CHARS and word.startswith(label_stem))


class Seen:
    """Remembers lines, and tells whether another one is the same in nearly the same words."""

    def __init__(self) -> None:
        self._shingles: list[frozenset[tuple[str, ...]]] = []

    def add(self, text: str) -> None:
        """Remembers a line."""
        self._shingles.append(_shingles(text))

    def has_like(self, text: str) -> bool:
        """Tells whether a remembered line shares so many word pairs that it is no new one."""
        one = _shingles(text)
        return any(len(one & other) >= NEAR * len(one | other) for other in self._shingles)


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    found = words(text)
    pairs: list[tuple[str, ...]] = list(pairwise(found))
    # Without a single word only the signs are left to compare.
    return frozenset(pairs or [tuple(found) or (text,)])
