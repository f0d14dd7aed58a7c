"""DSPy: an office moves, and a program stops reading the old address.

    pip install 'gcmem[dspy]'
    python examples/with_dspy.py

Offline: DSPy's dummy model stands in for a real one; what it was shown is printed.
"""

from __future__ import annotations

import asyncio

import dspy
from dspy.utils import DummyLM

from gcmem import Memory
from gcmem.integrations.dspy import GCMemRetriever

STORY = [
    ("2025-01-10T09:00:00Z", "The team has nine members."),
    ("2025-02-01T09:00:00Z", "The team's office is in Hamburg."),
    ("2026-03-01T09:00:00Z", "The team's office has moved to Munich."),
]
QUESTION = "Where is the team's office?"


class Answer(dspy.Module):
    """Retrieves, then answers from what was retrieved."""

    def __init__(self, retrieve: GCMemRetriever) -> None:
        super().__init__()
        self.retrieve = retrieve
        self.respond = dspy.Predict("context: list[str], question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        """Answers a question."""
        context = self.retrieve(question).passages
        return self.respond(context=context, question=question)

    async def aforward(self, question: str) -> dspy.Prediction:
        """Answers a question without blocking the event loop."""
        context = (await self.retrieve.acall(question)).passages
        return await self.respond.acall(context=context, question=question)


def main() -> None:
    """Tells the story to a memory and runs a program over it, with and without resolution."""
    model = DummyLM([{"answer": "(a dummy's answer)"}] * 3)
    dspy.configure(lm=model)
    with Memory(":memory:") as memory:
        memory.add([{"content": text, "at": at} for at, text in STORY], user_id="team")
        memory.judge()  # also happens in the background
        plain = GCMemRetriever(memory, user_id="team", mode="annotate")
        resolved = GCMemRetriever(memory, user_id="team")
        Answer(plain)(question=QUESTION)
        print(f"plain, the model was shown: {_shown(model)}")
        Answer(resolved)(question=QUESTION)
        print(f"gcmem, the model was shown: {_shown(model)}")
        asyncio.run(Answer(resolved).acall(question=QUESTION))
        print(f"gcmem, async: {_shown(model)}")
        for shadow in resolved(QUESTION).shadows:
            print(f"left out: {shadow.candidate.chunk.text} Since: {shadow.witness.chunk.text}")


def _shown(model: DummyLM) -> list[str]:
    prompt = model.history[-1]["messages"][-1]["content"]
    return [text for _, text in STORY if text in prompt]


if __name__ == "__main__":
    main()
