"""The benchmark's readers: the majority reader of Theorem 2, the local reader, chat models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gcmem.answer import LLMReader
from gcmem.bench.data.asking import Asker
from gcmem.bench.data.streams import Texts
from gcmem.defaults import default_reader
from gcmem.errors import InvalidInputError, ModelResponseError
from gcmem.llm import OpenAIChat
from gcmem.protocols import ChatModel, Reader
from gcmem.types import Prompt, Reading


class MajorityReader:
    """The reader of Theorem 2: every chunk has one vote, and the state with the most votes wins.

    It knows the state of each chunk, so only the mixture of states decides. In a tie the newest
    state loses.
    """

    id = "majority"

    def __init__(self, states: Mapping[str, str | None], newest: str | None) -> None:
        self._states = states
        self._newest = newest

    def read(self, prompts: Sequence[Prompt]) -> tuple[Reading, ...]:
        """Returns the state that most chunks show."""
        return tuple(self._vote(prompt) for prompt in prompts)

    def _vote(self, prompt: Prompt) -> Reading:
        shown = (self._states.get(chunk.id) for chunk in prompt.chunks)
        votes = Counter(state for state in shown if state in prompt.options)
        if not votes:
            return Reading(text="unclear")
        best = min(votes, key=lambda state: (-votes[state], state == self._newest, state))
        return Reading(text=best, choice=best)


class CachedChat:
    """A chat model with every reply cached on disk, by the request's hash."""

    def __init__(self, model: ChatModel, folder: Path) -> None:
        self._model = model
        self._asker = Asker(folder)
        self.id = model.id

    def complete(
        self, *, system: str, user: str, schema: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Returns the reply and the tokens spent; a cached reply costs none."""
        before = self._asker.usage.tokens
        reply = self._asker.ask(self._model, system=system, user=user, schema=schema, read=dict)
        if reply is None:
            raise ModelResponseError(f"{self.id} gave no valid reply")
        return reply, self._asker.usage.tokens - before


def shared_reader(
    name: str, texts: Texts, *, cache: Path, base_url: str | None, api_key: str | None
) -> Reader | None:
    """Returns a reader for all instances, or None for `majority`, which is made per instance."""
    kind, _, model = name.partition(":")
    if name == "majority":
        return None
    if name == "local":
        return default_reader(texts.encoder)
    if kind == "llm" and model:
        chat = OpenAIChat(model=model, base_url=base_url, api_key=api_key)
        return LLMReader(CachedChat(chat, cache))
    raise InvalidInputError(f"unknown reader {name!r}: pass majority, local or llm:MODEL")
