from __future__ import annotations

import pytest

from gcmem.sentences import sentences_of, states_something


def test_a_text_is_cut_behind_its_sentences() -> None:
    text = 'I live in Porto. "Really?" he asked… 住んでいる。はい\n - v1.2 runs at 15.30'
    assert sentences_of(text) == [
        "I live in Porto.",
        '"Really?"',
        "he asked…",
        "住んでいる。",
        "はい",
        "- v1.2 runs at 15.30",
    ]
    assert sentences_of(" \n ") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Porto.", True),
        ("I live in Porto", True),
        ("Where do I live?", False),
        ("Really?! Where?", False),
        ("住んでいるのはどこですか？", False),
        ("I moved to Lyon. Can you update it?", True),
        ("Can you update it?\n\nI moved to Lyon", True),
        ("  \n ", False),
        ("", False),
    ],
)
def test_a_turn_that_only_asks_states_nothing(text: str, expected: bool) -> None:
    assert states_something(text) is expected
