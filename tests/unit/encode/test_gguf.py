"""A real GGUF model; a language model, but pooled it embeds as well as this needs."""

from __future__ import annotations

import http.client
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gcmem.encode import GGUFEncoder
from gcmem.errors import InvalidInputError, MissingExtraError
from tests.small_model import small_model_file


@pytest.fixture(scope="module")
def encoder() -> Iterator[GGUFEncoder]:
    encoder = GGUFEncoder(
        small_model_file(), query_prefix="search_query: ", pooling="mean", max_tokens=32, threads=1
    )
    yield encoder
    del encoder


def test_vectors_are_unit_length_and_the_same_in_any_company(encoder: GGUFEncoder) -> None:
    texts = ["I live in Porto.", "漢字 🦉", "word " * 100]
    vectors = encoder.encode(texts)
    assert vectors.shape == (3, encoder.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-4)
    assert np.array_equal(encoder.encode(texts[:1])[0], vectors[0])
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_a_question_gets_the_prefix_of_questions(encoder: GGUFEncoder) -> None:
    question = encoder.encode_queries(["Porto?"])
    assert np.array_equal(question, encoder.encode(["search_query: Porto?"]))
    assert not np.array_equal(question, encoder.encode(["Porto?"]))


def test_tokens_are_counted_beyond_what_the_model_sees(encoder: GGUFEncoder) -> None:
    assert encoder.count_tokens(["word" + " word" * 99, ""]) == [100, 0]


def test_the_id_names_the_file_and_the_settings(encoder: GGUFEncoder) -> None:
    name, _, settings = encoder.id.partition("?")
    assert name.startswith(f"gguf:{small_model_file().stem}@")
    assert settings == "pooling=mean&max_tokens=32&query_prefix=search_query%3A%20"


def test_its_port_is_closed_to_others(encoder: GGUFEncoder) -> None:
    connection = http.client.HTTPConnection(encoder._address, timeout=10)
    connection.request("POST", "/tokenize", '{"content": "x"}')
    response = connection.getresponse()
    response.read()
    connection.close()
    assert response.status == 401


def test_a_file_that_can_not_embed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="there is no file"):
        GGUFEncoder(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(InvalidInputError, match="as a GGUF model"):
        GGUFEncoder(tmp_path / "text.gguf")
    with pytest.raises(InvalidInputError, match="mean, cls or last"):
        GGUFEncoder(tmp_path / "text.gguf", pooling="max")  # type: ignore[arg-type]


def test_a_model_without_pooling_asks_for_it() -> None:
    with pytest.raises(InvalidInputError, match="pass pooling='mean'"):
        GGUFEncoder(small_model_file(), max_tokens=32, threads=1)


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    shutil.copy(Path(__file__), tmp_path / "any.gguf")
    with pytest.raises(MissingExtraError, match=r"gcmem\[gguf\]"):
        GGUFEncoder(tmp_path / "any.gguf")
