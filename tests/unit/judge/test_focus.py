from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gcmem import Candidate, CandidateSet, Chunk, Memory
from gcmem.judge import Focus, PairwiseOracle
from gcmem.protocols import Vectors
from tests.conftest import day


class Words:
    """An encoder of the few words of these tests."""

    id = "words@1"
    words = ("job", "dog", "flat")

    @property
    def dimensions(self) -> int:
        return len(self.words)

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.array([[word in text for word in self.words] for text in texts], dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


class SameWord:
    """Finds a conflict wherever two texts share a word of the encoder's."""

    id = "same-word@1"

    def __init__(self) -> None:
        self.read: list[tuple[str, str]] = []

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.read += pairs
        return [0.9 if any(w in a and w in b for w in Words.words) else 0.02 for a, b in pairs]


OLD = "My job is at Google. My dog is Rex."


def judged(older: str, newer: str, question: str) -> tuple[list[float], SameWord]:
    texts = {"o": (older, day(1)), "n": (newer, day(2))}
    items = tuple(
        Candidate(chunk=Chunk(id=i, text=text, at=at), relevance=1.0, origin="mtm")
        for i, (text, at) in texts.items()
    )
    classifier = SameWord()
    oracle = PairwiseOracle(classifier, focus=Focus(Words()))
    found = oracle.judge(CandidateSet(query=question, items=items))
    return [conflict.score for conflict in found], classifier


@pytest.mark.parametrize(
    ("question", "scores"), [("which job?", [0.9]), ("which dog?", []), ("", [0.9])]
)
def test_a_message_goes_only_if_what_was_asked_for_has_changed(
    question: str, scores: list[float]
) -> None:
    assert judged(OLD, "My job is at Stripe.", question)[0] == scores


def test_what_only_the_whole_text_tells_counts() -> None:
    def both_words(question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [0.9 if "flat" in older and "dog" in older else 0.02 for older, _ in pairs]

    pair = ("She has a flat in Porto. It came with a dog.", "Neither is hers any more.")
    assert Focus(Words()).score(both_words, "which flat?", [pair]) == [0.9]


def test_a_long_message_costs_a_few_readings() -> None:
    older = " ".join([OLD, *(f"Sentence {n} is about something else." for n in range(20))])
    scores, classifier = judged(older, "My job is at Stripe.", "which dog?")
    assert scores == []
    assert len(classifier.read) == 5  # the whole, what was asked for, three others


def test_a_single_sentence_is_read_once() -> None:
    scores, classifier = judged("My job is at Google.", "My job is at Stripe.", "which dog?")
    assert (scores, len(classifier.read)) == ([0.9], 1)


def test_the_shipped_oracle_keeps_a_message_for_what_it_still_answers() -> None:
    with Memory(":memory:") as memory:
        memory.add("I live in Porto. I work at Google. My dog is Rex.", at=day(1))
        memory.add("We moved! I no longer live in Porto, I live in Lyon now.", at=day(2))
        assert len(memory.search("What is my dog called?")) == 2
        assert len(memory.search("Where do I live?")) == 1
