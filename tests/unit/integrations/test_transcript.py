from __future__ import annotations

from collections.abc import Sequence

from gcmem.integrations.transcript import note, superseded
from gcmem.resolve import Resolver
from gcmem.testing import RuleOracle
from gcmem.types import Chunk
from tests.conftest import day, same_slot

RESOLVER = Resolver(RuleOracle(same_slot))


def talk(*turns: tuple[str, str]) -> list[Chunk]:
    return [
        Chunk(id=str(n), text=text, speaker=speaker, at=day(n), seq=n)
        for n, (speaker, text) in enumerate(turns)
    ]


def gone(chunks: Sequence[Chunk]) -> dict[str, str]:
    return {
        shadow.candidate.chunk.text: shadow.witness.chunk.text
        for shadow in superseded(chunks, resolver=RESOLVER).values()
    }


def test_what_a_person_says_later_supersedes_it() -> None:
    assert gone(talk(("user", "home=Porto"), ("user", "diet=vegan"), ("user", "home=Lyon"))) == {
        "home=Porto": "home=Lyon"
    }


def test_a_question_supersedes_nothing() -> None:
    assert gone(talk(("user", "home=Porto"), ("user", "home=where?"))) == {}


def test_what_the_model_says_goes_with_the_fact_but_unseats_nothing() -> None:
    assert gone(talk(("assistant", "home=Porto"), ("user", "home=Lyon"))) == {
        "home=Porto": "home=Lyon"
    }
    assert gone(talk(("user", "home=Lyon"), ("assistant", "home=Porto"))) == {}
    assert gone(talk(("assistant", "home=Lyon"), ("assistant", "home=Porto"))) == {}


def test_a_shadow_of_the_model_keeps_its_speaker() -> None:
    (shadow,) = superseded(
        talk(("assistant", "home=Porto"), ("user", "home=Lyon")), resolver=RESOLVER
    ).values()
    assert shadow.candidate.chunk.speaker == "assistant"


def test_a_note_names_the_day_and_the_witness() -> None:
    (shadow,) = superseded(
        talk(("user", "home=Porto"), ("user", "home=Lyon")), resolver=RESOLVER
    ).values()
    assert note(shadow) == "[no longer true since 2026-01-02: home=Lyon]"
