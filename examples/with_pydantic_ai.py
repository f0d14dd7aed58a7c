"""A Pydantic AI agent in whose history a fact changes; runs offline.

    pip install 'gcmem[pydantic-ai]'
    python examples/with_pydantic_ai.py

The framework's FunctionModel takes the place of a real model, and shows what it was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from gcmem import Memory
from gcmem.integrations.pydantic_ai import SupersededTurns, memory_toolset

STORY = (
    "I live in Porto.",
    "I'm allergic to peanuts.",
    "We moved! I no longer live in Porto, I live in Lyon now.",
)
QUESTION = "Where do I live, and what must I not eat?"


def history_seen_by_the_model(capabilities: Sequence[Any] = ()) -> list[str]:
    """Tells the story in one conversation and returns what the model saw of the user."""
    seen: list[str] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        seen[:] = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
        return ModelResponse(parts=[TextPart("Noted.")])

    agent = Agent(FunctionModel(answer), capabilities=list(capabilities))
    history: list[ModelMessage] = []
    for message in (*STORY, QUESTION):
        history = agent.run_sync(message, message_history=history).all_messages()
    return seen


def tell() -> tuple[list[str], list[str]]:
    """Returns what the model saw of a plain history, and of one without superseded turns."""
    return history_seen_by_the_model(), history_seen_by_the_model([SupersededTurns().capability()])


def search_by_tool() -> list[str]:
    """Returns what an agent finds that looks into the memory before it answers."""
    found: list[str] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            found[:] = [hit["text"] for hit in last.content]
            return ModelResponse(parts=[TextPart("Found.")])
        return ModelResponse(parts=[ToolCallPart("search_memory", {"query": last.content})])

    with Memory(":memory:") as memory:
        memory.add(list(STORY), user_id="ana")
        tools = memory_toolset(memory, user_id="ana")
        Agent(FunctionModel(answer), toolsets=[tools]).run_sync(QUESTION)
    return found


if __name__ == "__main__":
    plain, current = tell()
    print("plain history:", *plain, sep="\n  ")
    print("gcmem, without superseded turns:", *current, sep="\n  ")
    print("search_memory:", *search_by_tool(), sep="\n  ")
