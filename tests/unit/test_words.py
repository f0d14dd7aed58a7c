from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer

from gcmem.words import asked_words, terms_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ana's releases", ["ana", "s", "releas"]),
        ("db-eu-03", ["db", "eu", "03", "db-eu-03"]),
        ("Straße, ÉTÉ", ["strass", "et"]),
        ("猫が", ["猫", "が", "猫が"]),
        ("...", []),
    ],
)
def test_words_are_folded_and_stemmed(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_a_question_loses_its_stop_words_unless_it_has_no_others() -> None:
    assert asked_words("Where do I live?") == ["live"]
    assert asked_words("What is it?") == words_of("What is it?")


def test_a_long_run_of_letters_is_read_in_a_moment() -> None:
    started = time.monotonic()
    terms_of("a" * 200_000)
    assert time.monotonic() - started < 5


def test_threads_stem_like_one_thread() -> None:
    texts = [f"running{n}ations quickly{n}ing relational{n}ness" for n in range(2000)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(words_of, texts))
    finally:
        sys.setswitchinterval(interval)
    alone = snowballstemmer.stemmer("porter")
    assert found == [[alone.stemWord(word) for word in text.split()] for text in texts]
