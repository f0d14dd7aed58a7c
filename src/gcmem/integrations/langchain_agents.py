"""LangChain agents: a middleware that adds memories to model calls (`gcmem[langgraph]`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from gcmem.errors import MissingExtraError
from gcmem.memory import Memory
from gcmem.types import Scope

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
except ModuleNotFoundError:
    raise MissingExtraError("langgraph", package="langchain") from None

from gcmem.integrations.backfill import search_filled
from gcmem.integrations.langchain import as_lines

HEADING = "What is known from earlier conversations and still true, each with its date:"


class MemoryMiddleware(AgentMiddleware):
    """Adds memories about the user's message to the system message of every model call.

    Contradicted memories are left out. `scope` returns the scope for a run's context, if one agent
    serves several users. With `remember=True` the user's message is added to the memory after the
    agent has answered it.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        scope: Callable[[Any], Scope] | None = None,
        k: int = 10,
        heading: str = HEADING,
        remember: bool = False,
    ) -> None:
        super().__init__()
        self.memory = memory
        self._scope = Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        self._scope_of = scope
        self._k = k
        self._heading = heading
        self._remember = remember

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        """Calls the model with the memories added."""
        return handler(self._with_memories(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Calls the model with the memories added; the search runs in a worker thread."""
        return await handler(await asyncio.to_thread(self._with_memories, request))

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Adds the user's message to the memory if `remember` is set."""
        said = _last_user_text(state["messages"])
        if self._remember and said:
            self.memory.add(said, **self._ids(runtime))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """The async version of `after_agent`, in a worker thread."""
        await asyncio.to_thread(self.after_agent, state, runtime)

    def _with_memories(self, request: ModelRequest) -> ModelRequest:
        query = _last_user_text(request.messages)
        if not query:
            return request
        found = search_filled(self.memory, query, k=self._k, **self._ids(request.runtime))
        if not found:
            return request
        told = f"{self._heading}\n{as_lines(found)}"
        system = request.system_message
        content: list[Any] = [{"type": "text", "text": told}]
        if system is not None:
            content = [*system.content_blocks, {"type": "text", "text": f"\n\n{told}"}]
        return request.override(system_message=SystemMessage(content=content))

    def _ids(self, runtime: Any) -> dict[str, Any]:
        scope = self._scope if self._scope_of is None else self._scope_of(runtime.context)
        return {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}


def _last_user_text(messages: Sequence[AnyMessage]) -> str:
    """Returns the text of the user's last message, or an empty string."""
    said = (m.text for m in reversed(messages) if isinstance(m, HumanMessage))
    return str(next(said, "")).strip()
