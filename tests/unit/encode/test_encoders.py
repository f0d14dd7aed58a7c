from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from gcmem import Memory, reindex
from gcmem.calls import one_call
from gcmem.encode import CachedEncoder, MiniLMEncoder, SentenceTransformersEncoder
from gcmem.errors import EncoderError, InvalidInputError, MissingExtraError
from gcmem.protocols import QueryEncoder, Vectors
from gcmem.testing import HashEncoder
from gcmem.vectors import encode_queries
from tests.unit.cli.test_commands import gcmem

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


class Prefixing(HashEncoder):
    """Gives questions a word that documents don't have."""

    def __init__(self) -> None:
        super().__init__(name="prefixing")
        self.seen: list[str] = []

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        self.seen.extend(texts)
        return self.encode([f"question {text}" for text in texts])


def test_questions_are_encoded_as_such_and_kept_apart() -> None:
    inner = Prefixing()
    cached = CachedEncoder(inner)
    with one_call():
        document = cached.encode(["a"])
        question = cached.encode_queries(["a", "a"])
        cached.encode_queries(["a"])
        assert np.array_equal(cached.encode(["a"]), document)
    assert inner.seen == ["a"]
    assert np.array_equal(question, inner.encode(["question a"] * 2))
    assert np.array_equal(encode_queries(inner, ["a"]), question[:1])
    plain = HashEncoder()
    assert np.array_equal(CachedEncoder(plain).encode_queries(["a"]), plain.encode(["a"]))
    assert np.array_equal(encode_queries(plain, ["a"]), plain.encode(["a"]))
    assert isinstance(inner, QueryEncoder)
    assert not isinstance(plain, QueryEncoder)


def test_vectors_of_questions_are_checked_too() -> None:
    class Broken(Prefixing):
        def encode_queries(self, texts: Sequence[str]) -> Vectors:
            return 2 * self.encode(texts)

    with pytest.raises(EncoderError, match="not of length 1"):
        CachedEncoder(Broken()).encode_queries(["a"])


def test_a_memory_encodes_what_is_asked_as_a_question_and_what_is_added_as_a_document() -> None:
    inner = Prefixing()
    with Memory(":memory:", encoder=inner) as memory:
        memory.add("The owl sleeps.")
        assert inner.seen == []
        memory.candidates("Who sleeps?")
    assert inner.seen == ["Who sleeps?"]


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"gcmem\[sentence-transformers\]"):
        SentenceTransformersEncoder("any")


def test_a_store_of_the_former_encoder_keeps_working_until_it_is_reindexed(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=MiniLMEncoder(version=2)) as memory:
        memory.add(["I drink tea.", "My car is red."], user_id="ana")
    with Memory(path) as memory:
        assert memory.encoder.id == "gcmem-encoder@2"
        assert memory.search("tea", user_id="ana", k=1)[0].chunk.text == "I drink tea."
        memory.add("I drink coffee.", user_id="ana")
    assert "a newer encoder finds more" in gcmem("doctor", path=path)
    assert reindex(path) == 3
    with Memory(path) as memory:
        assert memory.encoder.id == "gcmem-encoder@3"
        assert len(memory.search("drink", user_id="ana").candidates) == 3
    with pytest.raises(InvalidInputError, match="version=1"):
        MiniLMEncoder(version=1)
