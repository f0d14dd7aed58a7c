from __future__ import annotations

import numpy as np
import pytest

from gcmem.calls import one_call
from gcmem.encode import CachedEncoder, MiniLMEncoder, SentenceTransformersEncoder
from gcmem.errors import MissingExtraError
from gcmem.testing import HashEncoder

TEXTS = [
    "I never eat meat.",
    "She is a vegetarian.",
    "The staging database listens on port 5433.",
    "漢字 🦉",
    "word " * 1000,
]


@pytest.fixture(scope="module")
def encoder() -> MiniLMEncoder:
    return MiniLMEncoder(workers=1)


def test_vectors_are_unit_length_and_tell_meanings_apart(encoder: MiniLMEncoder) -> None:
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_a_text_has_one_vector_whatever_stands_beside_it(encoder: MiniLMEncoder) -> None:
    together = encoder.encode(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert np.array_equal(encoder.encode([text])[0], vector)
    assert np.array_equal(MiniLMEncoder(workers=2).encode(TEXTS), together)
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_tokens_are_counted_beyond_what_the_model_sees(encoder: MiniLMEncoder) -> None:
    assert encoder.count_tokens(["one two three", "word " * 1000]) == [3, 1000]


def test_a_text_is_encoded_once_a_call_and_again_in_the_next() -> None:
    class Counting(HashEncoder):
        seen: list[str] = []  # noqa: RUF012

        def encode(self, texts: object) -> object:  # type: ignore[override]
            self.seen.extend(texts)  # type: ignore[arg-type]
            return super().encode(texts)  # type: ignore[arg-type]

    inner = Counting()
    cached = CachedEncoder(inner)  # type: ignore[arg-type]
    assert np.array_equal(cached.encode(["a", "b", "a"]), HashEncoder().encode(["a", "b", "a"]))
    assert inner.seen == ["a", "b"]
    with one_call():
        cached.encode(["a", "c"])
        cached.encode(["c", "a", "b"])
    assert inner.seen == ["a", "b", "a", "c", "b"]
    with one_call():
        cached.encode(["a"])
    assert inner.seen == ["a", "b", "a", "c", "b", "a"]
    assert cached.encode([]).shape == (0, inner.dimensions)


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"gcmem\[sentence-transformers\]"):
        SentenceTransformersEncoder("any")
