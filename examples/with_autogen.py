"""A gcmem memory for AutoGen's agents: what enters the context is still true; runs offline.

    pip install autogen-core
    python examples/with_autogen.py

Copy `GCMemMemory` and pass it to `AssistantAgent(memory=[...])`.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from autogen_core import CancellationToken
from autogen_core.memory import (
    ListMemory,
    Memory,
    MemoryContent,
    MemoryMimeType,
    MemoryQueryResult,
    UpdateContextResult,
)
from autogen_core.model_context import BufferedChatCompletionContext, ChatCompletionContext
from autogen_core.models import SystemMessage, UserMessage

import gcmem

STORY = (
    (datetime(2025, 1, 9, tzinfo=UTC), "I live in Porto."),
    (datetime(2025, 2, 2, tzinfo=UTC), "I'm allergic to peanuts."),
    (
        datetime(2025, 9, 15, tzinfo=UTC),
        "We moved! I no longer live in Porto, I live in Lyon now.",
    ),
)
QUESTION = "Where do I live, and what must I not eat?"


class GCMemMemory(Memory):
    """Puts into an agent's context what is remembered about its last message and still true."""

    def __init__(self, memory: gcmem.Memory, *, user_id: str, k: int = 5) -> None:
        self._memory = memory
        self._user_id = user_id
        self._k = k

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Adds the memories that answer the newest message to the context."""
        messages = await model_context.get_messages()
        asked = messages[-1].content if messages else None
        if not isinstance(asked, str) or not asked.strip():
            return UpdateContextResult(memories=MemoryQueryResult(results=[]))
        found = await self.query(asked)
        if found.results:
            lines = "\n".join(f"- {memory.content}" for memory in found.results)
            await model_context.add_message(SystemMessage(content=f"Known and current:\n{lines}"))
        return UpdateContextResult(memories=found)

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """Finds what is still true about a topic."""
        text = query if isinstance(query, str) else str(query.content)
        hits = await self._memory.asearch(text, user_id=self._user_id, k=self._k, **kwargs)
        results = [
            MemoryContent(
                content=hit.chunk.text,
                mime_type=MemoryMimeType.TEXT,
                metadata={"id": hit.chunk.id, "at": str(hit.chunk.at)},
            )
            for hit in hits
        ]
        return MemoryQueryResult(results=results)

    async def add(
        self, content: MemoryContent, cancellation_token: CancellationToken | None = None
    ) -> None:
        """Remembers a text; `metadata["at"]` is its time, an aware datetime."""
        at = (content.metadata or {}).get("at")
        await self._memory.aadd(str(content.content), user_id=self._user_id, at=at)

    async def clear(self) -> None:
        """Erases what is remembered of this user."""
        await asyncio.to_thread(self._memory.forget, user_id=self._user_id)

    async def close(self) -> None:
        """Releases the store."""
        self._memory.close()


async def context_of(memory: Memory) -> str:
    """Tells the story to a memory and returns the context that a model would see."""
    for at, text in STORY:
        content = MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata={"at": at})
        await memory.add(content)
    context = BufferedChatCompletionContext(buffer_size=10)
    await context.add_message(UserMessage(content=QUESTION, source="user"))
    await memory.update_context(context)
    await memory.close()
    return str((await context.get_messages())[-1].content)


async def tell() -> None:
    """Prints the context with AutoGen's own memory, and with gcmem's."""
    print("ListMemory:", await context_of(ListMemory()), sep="\n")
    ours = GCMemMemory(gcmem.Memory(":memory:"), user_id="ana")
    print("GCMemMemory:", await context_of(ours), sep="\n")


if __name__ == "__main__":
    asyncio.run(tell())
