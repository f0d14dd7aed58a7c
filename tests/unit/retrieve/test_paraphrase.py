from __future__ import annotations

from gcmem.retrieve import ParaphraseExpander
from gcmem.testing import ScriptedChat


def test_paraphrases_come_after_the_question_and_without_repeats() -> None:
    chat = ScriptedChat([{"queries": ["Ana eats", "what does ana eat?", "Ana's diet", "too many"]}])
    queries = ParaphraseExpander(chat, count=3).expand("What does Ana eat?")
    assert queries == ("What does Ana eat?", "Ana eats", "Ana's diet")
    assert "What does Ana eat?" in chat.requests[0][1]
