from __future__ import annotations

import pytest

from gcmem.retrieve import KeywordExpander, ParaphraseExpander
from gcmem.testing import ScriptedChat


@pytest.mark.parametrize(
    ("question", "queries"),
    [
        (
            "What does Ana eat these days?",
            ("What does Ana eat these days?", "Ana eat these days", "Ana eat"),
        ),
        ("staging port", ("staging port",)),
        ("Where?", ("Where?",)),
        (
            "Is v2.1 on 10.0.0.1:80?",
            ("Is v2.1 on 10.0.0.1:80?", "v2.1 on 10.0.0.1:80", "v2.1 10.0.0.1:80"),
        ),
    ],
)
def test_a_question_becomes_its_own_statement_and_keywords(
    question: str, queries: tuple[str, ...]
) -> None:
    assert KeywordExpander().expand(question) == queries


def test_paraphrases_come_after_the_question_and_without_repeats() -> None:
    chat = ScriptedChat([{"queries": ["Ana eats", "what does ana eat?", "Ana's diet", "too many"]}])
    queries = ParaphraseExpander(chat, count=3).expand("What does Ana eat?")
    assert queries == ("What does Ana eat?", "Ana eats", "Ana's diet")
    assert "What does Ana eat?" in chat.requests[0][1]
