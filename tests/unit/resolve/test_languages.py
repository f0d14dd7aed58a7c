"""A model that reads English alone removes nothing in other languages."""

from __future__ import annotations

import pytest

from gcmem import Memory
from gcmem.languages import looks_english
from gcmem.testing import RuleOracle
from tests.conftest import day

UPDATES = {
    "German": ("Ich wohne in Berlin.", "Ich bin umgezogen, ich wohne jetzt in Hamburg.", "Hamburg"),
    "French": ("J'habite à Lyon.", "Nous avons déménagé, j'habite maintenant à Lille.", "Lille"),
    "Spanish": ("Vivo en Madrid.", "Me mudé, ahora vivo en Sevilla.", "Sevilla"),
    "Portuguese": ("Moro em Lisboa.", "Mudei de casa, agora moro em Braga.", "Braga"),
    "Chinese": ("我住在北京。", "我搬家了,现在住在上海。", "上海"),
    "Japanese": ("大阪に住んでいます。", "引っ越して、今は東京に住んでいます。", "東京"),
    "Arabic": ("أسكن في الإسكندرية", "انتقلت وأسكن الآن في القاهرة", "القاهرة"),
}


class EnglishOracle(RuleOracle):
    """Takes every pair for a conflict, and says that it reads English alone."""

    language = "en"


@pytest.mark.parametrize("language", UPDATES)
def test_other_languages_are_found_and_annotated_but_never_removed(language: str) -> None:
    old, new, place = UPDATES[language]
    oracle = EnglishOracle(lambda a, b: True)
    with Memory(":memory:", oracle=oracle, require_qualified=False) as memory:
        memory.add(old, user_id="ana", at=day(1))
        memory.add(new, user_id="ana", at=day(2))
        memory.add([f"Note {n} about the garden." for n in range(20)], user_id="bob", at=day(3))
        hits = memory.search(f"{place}?", user_id="ana")
        assert hits.kept[0].chunk.text == new  # found by its words
        assert {item.chunk.text for item in hits.kept} == {old, new}
        assert [shadow.candidate.chunk.text for shadow in hits.shadows] == [old]


def test_english_is_still_resolved() -> None:
    oracle = EnglishOracle(lambda a, b: True)
    with Memory(":memory:", oracle=oracle, require_qualified=False) as memory:
        memory.add("I live in Porto.", at=day(1))
        memory.add("I moved to Lyon.", at=day(2))
        assert [hit.chunk.text for hit in memory.search("Where do I live?")] == ["I moved to Lyon."]


@pytest.mark.parametrize(
    "text",
    [
        "I live in La Paz.", "port 8080", "db-eu-03: primary", "", "42", "Region: eu-west-1",
        "Release on Fridays", "He is from São Paulo and likes it", "Café Été is where we met",
    ],
)  # fmt: skip
def test_english_and_plain_notes_look_english(text: str) -> None:
    assert looks_english(text)


@pytest.mark.parametrize("text", [text for update in UPDATES.values() for text in update[:2]])
def test_other_languages_do_not(text: str) -> None:
    assert not looks_english(text)
