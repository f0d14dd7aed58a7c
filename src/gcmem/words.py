"""Words as lexical search sees them: folded, stemmed, hashed, and scored by BM25."""

from __future__ import annotations

import re
import threading
import unicodedata
import zlib
from collections import Counter
from functools import lru_cache

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

K1, B = 1.2, 0.75
"""The usual parameters of BM25, which are also those of SQLite's FTS5."""

TERM = np.dtype([("term", "<u4"), ("count", "<u2")])
"""One distinct word of a text: its hash, and how often it occurs."""
MAX_COUNT = 2**16 - 1

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
WORD = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
# Several parts, at least one of them with a digit: db-eu-03, v1.2, AB_17.
CODE = re.compile(r"\b\w+(?:[-_./:]\w+)+")

STOP_WORDS = frozenset(
    "a about am an and any are as at be been being but by can could did do does for from had has "
    "have he her hers him his how i if in into is it its just me my no nor not of on or our she "
    "should so some such than that the their them then there these they this to too very was we "
    "were what when where which who whom why will with would you your".split()
)
"""Left out of questions only: a question is made of them, but they say nothing about it."""

_stemmer = snowballstemmer.stemmer("porter")
_stemming = threading.Lock()


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    with _stemming:  # the stemmer keeps the word it is working on
        return str(_stemmer.stemWord(word)) or word


def words_of(text: str, *, without: frozenset[str] = frozenset()) -> list[str]:
    """Returns the words of a text: in lower case, without accents, stemmed as English.

    Text without spaces (Chinese, Japanese, Korean) gives characters and pairs of them. A code like
    `db-eu-03` gives its parts and the whole.
    """
    folded = _folded(text)
    words: list[str] = []
    for found in WORD.findall(folded):
        if "\u3040" <= found[0] <= "\ufaff":
            words += _pairs(found)
        elif found not in without:
            words.append(_stem(found))
    words += [code for code in CODE.findall(folded) if any(map(str.isdigit, code))]
    return words


def asked_words(question: str) -> list[str]:
    """Returns the words of a question without stop words, unless it has no others."""
    return words_of(question, without=STOP_WORDS) or words_of(question)


def term_of(word: str) -> int:
    """Returns the hash of a word, the same everywhere and always."""
    return zlib.crc32(word.encode())


def terms_of(text: str) -> NDArray[np.void]:
    """Returns the distinct words of a text as hashes with their counts."""
    counts = Counter(map(term_of, words_of(text)))
    rows = [(term, min(count, MAX_COUNT)) for term, count in sorted(counts.items())]
    return np.array(rows, dtype=TERM)


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    # Composed again: a Korean syllable is one character, and Japanese voicing marks matter.
    plain = "".join(c for c in decomposed if not "\u0300" <= c <= "\u036f")
    return unicodedata.normalize("NFC", plain)


def _pairs(characters: str) -> list[str]:
    pairs = [characters[n : n + 2] for n in range(len(characters) - 1)]
    # Single characters too: a question may be about one.
    return [*characters, *pairs]
