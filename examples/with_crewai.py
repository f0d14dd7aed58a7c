"""gcmem as tools of a CrewAI agent: what is found is still true.

    pip install crewai
    python examples/with_crewai.py

Copy `memory_tools` and pass them to `Agent(tools=...)`.
"""

from typing import Any

from crewai.tools import tool

from gcmem import Memory

STORY = (
    "I live in Porto.",
    "I'm allergic to peanuts.",
    "We moved! I no longer live in Porto, I live in Lyon now.",
)
QUESTION = "Where do I live, and what must I not eat?"


def memory_tools(memory: Memory, *, user_id: str, k: int = 5) -> list[Any]:
    """Returns two tools, one that remembers and one that finds what is still true."""

    def remember(text: str) -> str:
        """Remember a fact that the user stated, in one plain sentence."""
        memory.add(text, user_id=user_id)
        return "remembered"

    def recall(query: str) -> str:
        """Find what is remembered and still true about a topic."""
        hits = memory.search(query, user_id=user_id, k=k)
        return "\n".join(hit.chunk.text for hit in hits) or "nothing is remembered about that"

    return [tool("remember")(remember), tool("recall")(recall)]


if __name__ == "__main__":
    with Memory(":memory:") as memory:
        remember, recall = memory_tools(memory, user_id="ana")
        for message in STORY:
            remember.run(text=message)
        print("Everything said:", *STORY, sep="\n  ")
        print("recall:", *recall.run(query=QUESTION).splitlines(), sep="\n  ")
