"""A session of the OpenAI Agents SDK in which a fact changes; runs offline.

    pip install 'gcmem[openai-agents]'
    python examples/with_openai_agents.py

A scripted model takes the place of a real one, and shows what it was sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Session, SQLiteSession, Usage
from agents.run import RunConfig
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from gcmem import Memory
from gcmem.integrations.openai_agents import GCMemSession

STORY = (
    "I live in Porto.",
    "I'm allergic to peanuts.",
    "We moved! I no longer live in Porto, I live in Lyon now.",
)
QUESTION = "Where do I live, and what must I not eat?"


class ScriptedModel(Model):
    """Says "Noted." to everything, and keeps what it was sent last."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """Answers, as a model does that is not there."""
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        self.seen = [item["content"] for item in items if item["role"] == "user"]
        text = ResponseOutputText(text="Noted.", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Is not part of this story."""
        raise NotImplementedError


def history_seen_by_the_model(session: Session) -> list[str]:
    """Tells the story in one session and returns what the model saw of the user in the end."""
    model = ScriptedModel()
    agent = Agent(name="Concierge", model=model)
    for message in (*STORY, QUESTION):
        Runner.run_sync(
            agent, message, session=session, run_config=RunConfig(tracing_disabled=True)
        )
    return model.seen


def tell() -> tuple[list[str], list[str]]:
    """Returns what the model saw with the SDK's own session, and with gcmem's."""
    plain = history_seen_by_the_model(SQLiteSession("chat"))
    with Memory(":memory:") as memory:
        session = GCMemSession("chat", memory=memory, user_id="ana")
        return plain, history_seen_by_the_model(session)


if __name__ == "__main__":
    plain, current = tell()
    print("plain, SQLiteSession:", *plain, sep="\n  ")
    print("gcmem, GCMemSession:", *current, sep="\n  ")
