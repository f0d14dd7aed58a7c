"""How the texts of the corpus are compared: words, stems, and near-duplicates by shingles."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

NEAR = 0.7
STOP_WORDS = frozenset(
    "about after also been before being both does each from have having here into just keep keeps "
    "less like made make makes more most much never none only other over some such than that their "
    "them then there they this through under until very were what when where which while will with "
    "without would your".split()
)
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def normal(text: str) -> str:
    """Returns a text as it is compared: lower case, straight quotes, single spaces."""
    return " ".join(text.casefold().replace("’", "'").split())


def words(text: str) -> list[str]:
    """Returns the words of a text in lower case."""
    return WORD.findall(normal(text))


def stem(word: str) -> str:
    """Cuts the common English endings off a word, so that forms of one word meet."""
    word = word.removesuffix("'s")
    for ending in ("ing", "ers", "ed", "er", "ies", "es", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def stems(text: str) -> set[str]:
    """Returns the stems of the words that count: four letters or more, no stop words."""
    return {stem(w) for w in words(text) if len(w) >= 4 and w not in STOP_WORDS}


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Returns the pairs of neighbouring words of a text (the word itself, if it is only one)."""
    found = words(text)
    pairs: list[tuple[str, ...]] = list(pairwise(found))
    return frozenset(pairs or [tuple(found)])


def near_duplicates(texts: Sequence[str], threshold: float = NEAR) -> list[tuple[int, int, float]]:
    """Returns the pairs of texts whose shingles have at least this Jaccard similarity.

    Two sets that are so similar share one of their rarest shingles, so only those are indexed.
    """
    sets = [shingles(text) for text in texts]
    frequency = Counter(s for one in sets for s in one)
    index: dict[tuple[str, ...], list[int]] = defaultdict(list)
    found = []
    for i, one in enumerate(sets):
        ordered = sorted(one, key=lambda s: (frequency[s], s))
        prefix = ordered[: len(one) - math.ceil(threshold * len(one) - 1e-9) + 1]
        for j in {j for s in prefix for j in index[s]}:
            common = len(one & sets[j])
            score = common / (len(one) + len(sets[j]) - common)
            if score >= threshold:
                found.append((j, i, round(score, 3)))
        for s in prefix:
            index[s].append(i)
    return sorted(found)
