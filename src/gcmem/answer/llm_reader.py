"""A reader that asks a language model."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.answer.prompts import SYSTEM, UNCLEAR, render, schema
from gcmem.protocols import ChatModel
from gcmem.types import Prompt, Reading


class LLMReader:
    """Answers with any chat model, for example `gcmem.llm.OpenAIChat`."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.id = f"llm:{model.id}"

    def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
        """Returns one reading per prompt, with one model call each."""
        return tuple(self._read(prompt) for prompt in prompts)

    def _read(self, prompt: Prompt) -> Reading:
        reply, tokens = self._model.complete(
            system=SYSTEM, user=render(prompt), schema=schema(prompt)
        )
        text = str(reply["answer"]).strip()
        if text.strip(".").upper() == UNCLEAR:
            return Reading(text=UNCLEAR.lower(), choice=None, tokens=tokens)
        choice = next((o for o in prompt.options if o.casefold() == text.casefold()), None)
        return Reading(text=text, choice=choice, tokens=tokens)
