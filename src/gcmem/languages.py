"""Tells English from other languages, so that a model that reads English alone does no harm."""

from __future__ import annotations

import re
import unicodedata

LETTERS = re.compile(r"[^\W\d_]+")

ENGLISH = frozenset(
    "i the and is my we to of a now have has not it for on with was are you at this that from he "
    "she they our his her their be been will would can but or if there what your me us by".split()
)
# Frequent words of other languages that are not English words as well.
OTHERS = frozenset(
    # German, Dutch
    "ich und nicht ist das der dem den wir mein meine habe hat auf jetzt seit eine ein einen zu "
    "mit für sie er sich auch wohne bin sind ik het een niet mijn nu van voor zijn woon "
    # French, Spanish, Portuguese, Italian
    "je le les et est pas mon une dans pour suis nous maintenant des du habite j'ai sur avec "
    "yo el los las y es mi una vivo ahora con que del se muy estoy en para "
    "não meu minha uma um em agora moro com dos das os estou sou "
    "io il gli è non mio mia sono ora che di della abito vivo".split()
)
OTHER_SHARE = 0.25


def looks_english(text: str) -> bool:
    """Returns whether a text is English, or too short and plain to tell.

    Another script, or more frequent words of other languages than of English, speak against it.
    """
    words = LETTERS.findall(text.casefold())
    if not words:
        return True
    letters = "".join(words)
    latin = sum("LATIN" in unicodedata.name(letter, "") for letter in letters)
    if latin * 2 < len(letters):
        return False
    others = sum(word in OTHERS for word in words)
    return others <= sum(word in ENGLISH for word in words) or others < OTHER_SHARE * len(words)
