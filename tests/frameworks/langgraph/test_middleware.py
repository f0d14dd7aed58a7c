from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage

from gcmem import Memory, Scope
from gcmem.integrations.langchain_agents import MemoryMiddleware
from tests.conftest import day
from tests.frameworks.story import CURRENT, QUESTION, STALE, STANDING, told_memory


class Listening(GenericFakeChatModel):
    """A chat model that keeps what it was sent."""

    heard: list[str] = []  # noqa: RUF012

    def _generate(self, messages: Sequence[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.heard.extend(m.text for m in messages if m.type == "system")
        return super()._generate(messages, *args, **kwargs)


@dataclass
class Context:
    user: str


def listening() -> Listening:
    return Listening(messages=iter([AIMessage("ok")] * 4), heard=[])


def asked(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def test_the_model_is_told_what_still_holds() -> None:
    model = listening()
    agent = create_agent(
        model,
        system_prompt="Be brief.",
        middleware=[MemoryMiddleware(told_memory(), user_id="ana")],
    )
    agent.invoke(asked(QUESTION))
    await agent.ainvoke(asked(QUESTION))
    assert len(model.heard) == 2
    for told in model.heard:
        assert told.startswith("Be brief.")
        assert CURRENT in told
        assert STANDING in told
        assert STALE not in told


async def test_one_agent_serves_several_users_and_remembers_each(memory: Memory) -> None:
    model = listening()
    agent = create_agent(
        model,
        middleware=[MemoryMiddleware(memory, scope=lambda c: Scope(user_id=c.user), remember=True)],
        context_schema=Context,
    )
    memory.add("x=1", user_id="ana", at=day(1))
    agent.invoke(asked("x=2"), context=Context("ana"))
    await agent.ainvoke(asked("x=3"), context=Context("bo"))
    agent.invoke(asked("x?"), context=Context("ana"))
    assert [chunk.text for chunk in memory.get_all(user_id="ana")] == ["x=1", "x=2", "x?"]
    assert [chunk.text for chunk in memory.get_all(user_id="bo")] == ["x=3"]
    assert [told.splitlines()[1] for told in model.heard] == [
        "- [2026-01-02] x=1",
        "- [2026-06-01] x=2",
    ]


@pytest.mark.parametrize("messages", [[], [{"role": "assistant", "content": "Hello."}]])
def test_where_nobody_asked_nothing_is_added(memory: Memory, messages: list[Any]) -> None:
    memory.add("x=1", at=day(1))
    model = listening()
    create_agent(model, middleware=[MemoryMiddleware(memory, remember=True)]).invoke(
        {"messages": messages}
    )
    assert model.heard == []
    assert len(memory.get_all()) == 1
