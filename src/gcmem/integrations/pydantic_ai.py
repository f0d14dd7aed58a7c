"""Pydantic AI: memory tools, and a history without turns that are no longer true.

Needs the extra `pydantic-ai`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from gcmem.defaults import make_resolver
from gcmem.errors import MissingExtraError
from gcmem.integrations.transcript import note, superseded
from gcmem.judge.pairs import ASSISTANT
from gcmem.memory import Memory
from gcmem.protocols import ConflictOracle
from gcmem.store.sqlite.scores import SQLiteScores
from gcmem.types import Chunk, Shadow, check_choice

try:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.capabilities import Hooks
    from pydantic_ai.messages import (
        ModelMessage,
        ModelResponse,
        TextPart,
        ThinkingPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
except ModuleNotFoundError:
    raise MissingExtraError("pydantic-ai", package="pydantic-ai-slim") from None

HistoryMode = Literal["drop", "annotate"]
UserId = str | Callable[[RunContext[Any]], str] | None
Place = tuple[int, int]
"""The position of a part: message number, part number."""

REMOVED = "[A message that is no longer true was removed.]"


def memory_toolset(
    memory: Memory, *, user_id: UserId = None, agent_id: str | None = None, k: int = 5
) -> FunctionToolset[Any]:
    """Returns the tools add_memory, search_memory and ask_memory for one user.

    `user_id` may be a function of the run's context, such as `lambda ctx: ctx.deps.user_id`.
    """

    def scope(ctx: RunContext[Any]) -> dict[str, Any]:
        user = user_id(ctx) if callable(user_id) else user_id
        return {"user_id": user, "agent_id": agent_id}

    async def add_memory(ctx: RunContext[Any], text: str) -> str:
        """Remember a fact that the user stated, in one plain sentence."""
        await memory.aadd(text, **scope(ctx))
        return "remembered"

    async def search_memory(ctx: RunContext[Any], query: str) -> list[dict[str, str]]:
        """Find what is remembered and still true about a topic, with the time of each memory."""
        hits = await memory.asearch(query, k=k, **scope(ctx))
        return [
            {"text": hit.chunk.text, "at": hit.chunk.at.isoformat() if hit.chunk.at else ""}
            for hit in hits
        ]

    async def ask_memory(ctx: RunContext[Any], question: str) -> str:
        """Answer a question from what is remembered and still true."""
        return (await memory.aask(question, k=k, **scope(ctx))).text

    return FunctionToolset([add_memory, search_memory, ask_memory])


class SupersededTurns:
    """Removes turns from a history that a newer statement of the user contradicts.

    Pass `SupersededTurns().capability()` to an agent: the model sees the shortened history, and
    `all_messages()` stays complete. The object itself is a history processor for `ProcessHistory`,
    which also changes `all_messages()`. Tool calls and their results never change.
    """

    def __init__(
        self,
        *,
        oracle: ConflictOracle | None = None,
        mode: HistoryMode = "drop",
        require_qualified: bool = True,
    ) -> None:
        """Uses the shipped oracle by default; an unqualified oracle only annotates."""
        check_choice(mode, name="mode", allowed=get_args(HistoryMode))
        # An agent sends the same history with every request, so verdicts are cached.
        self._resolver = make_resolver(
            oracle, require_qualified=require_qualified, scores=SQLiteScores()
        )
        self._drops = mode == "drop" and self._resolver.policy.removes

    def __call__(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """Returns the messages without the superseded turns, or with notes on them."""
        places = _statements(messages)
        shadows = superseded(list(places.values()), resolver=self._resolver)
        stale = {place: shadows[c.id] for place, c in places.items() if c.id in shadows}
        if not self._drops:
            return [_annotated(message, n, stale) for n, message in enumerate(messages)]
        opening = min((p for p, c in places.items() if c.speaker != ASSISTANT), default=None)
        kept = (_without(message, n, stale, opening) for n, message in enumerate(messages))
        return [message for message in kept if message is not None]

    def shadows(self, messages: Sequence[ModelMessage]) -> tuple[Shadow, ...]:
        """Returns the turns that would be removed, each with its witness."""
        return tuple(
            superseded(list(_statements(messages).values()), resolver=self._resolver).values()
        )

    def capability(self) -> Hooks[Any]:
        """Returns a capability that changes only what the model sees."""

        async def before_model_request(
            _ctx: RunContext[Any], request: ModelRequestContext
        ) -> ModelRequestContext:
            import asyncio

            return replace(request, messages=await asyncio.to_thread(self, request.messages))

        return Hooks(before_model_request=before_model_request)


def _statements(messages: Sequence[ModelMessage]) -> dict[Place, Chunk]:
    """Returns the texts of the user and the model, by place, in order."""
    seen: Counter[str] = Counter()
    found: dict[Place, Chunk] = {}
    for n, message in enumerate(messages):
        for m, part in enumerate(message.parts):
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                speaker, at = "user", part.timestamp
            elif isinstance(part, TextPart) and isinstance(message, ModelResponse):
                speaker, at = ASSISTANT, message.timestamp
            else:
                continue
            # Ids depend on content: verdicts are cached by id and shared by many histories.
            key = f"{speaker}\n{at}\n{part.content}"
            seen[key] += 1
            digest = hashlib.sha256(f"{seen[key]}\n{key}".encode()).hexdigest()
            found[n, m] = Chunk(
                id=digest, text=part.content, at=at, seq=len(found), speaker=speaker
            )
    return found


def _annotated(message: ModelMessage, n: int, stale: dict[Place, Shadow]) -> ModelMessage:
    if not any((n, m) in stale for m in range(len(message.parts))):
        return message
    parts = [
        replace(part, content=f"{note(stale[n, m])}\n{part.content}") if (n, m) in stale else part
        for m, part in enumerate(message.parts)
    ]
    return replace(message, parts=parts)


def _without(
    message: ModelMessage, n: int, stale: dict[Place, Shadow], opening: Place | None
) -> ModelMessage | None:
    """Returns the message without its stale parts, or None if nothing useful is left."""
    parts: list[Any] = []
    for m, part in enumerate(message.parts):
        if (n, m) not in stale:
            parts.append(part)
        elif (n, m) == opening:
            # Some providers require the first message to be the user's.
            parts.append(replace(part, content=REMOVED))
    if len(parts) == len(message.parts) and not any(place[0] == n for place in stale):
        return message
    if all(isinstance(part, ThinkingPart) for part in parts):
        return None
    return replace(message, parts=parts)
