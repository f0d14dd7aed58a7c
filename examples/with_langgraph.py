"""LangGraph: an agent with a long-term store that forgets nothing and repeats nothing stale.

pip install 'gcmem[langgraph]'; python examples/with_langgraph.py
"""

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore

from gcmem import Memory
from gcmem.integrations.langchain import GCMemEmbeddings
from gcmem.integrations.langchain_agents import MemoryMiddleware
from gcmem.integrations.langgraph import GCMemStore
from gcmem.times import parse_time

QUESTION = "What does Ana eat?"
ANA = ("users", "ana")
NOTES = {
    "food": ("2025-01-09", "Ana never eats meat."),
    "allergy": ("2025-04-28", "Ana is allergic to peanuts."),
    "news": ("2025-09-15", "Ana is no longer a vegetarian: she eats meat again."),
}


class TalkativeModel(GenericFakeChatModel):
    """A test model that prints the system message it is given, in place of a paid one."""

    def _generate(self, messages, *args, **kwargs):  # noqa: ANN001, ANN002, ANN003, ANN202
        print("gcmem: the model reads\n" + messages[0].text)
        return super()._generate(messages, *args, **kwargs)


def main() -> None:
    """Searches LangGraph's own store and gcmem's, then runs an agent on the memory behind it."""
    plain = InMemoryStore(index={"dims": 384, "embed": GCMemEmbeddings(), "fields": ["text"]})
    with Memory(":memory:") as memory:
        store = GCMemStore(memory, fields=["text"], time_key="date", user_of=lambda n: n[1])
        for key, (day, text) in NOTES.items():
            value = {"text": text, "date": f"{day}T09:00:00Z"}
            plain.put(ANA, key, value)
            store.put(ANA, key, value)
        show("plain: InMemoryStore", plain.search(ANA, query=QUESTION))
        show("gcmem: GCMemStore", store.search(ANA, query=QUESTION))

        then = memory.search(QUESTION, user_id="ana", as_of=parse_time("2025-06-01T00:00:00Z"))
        print("gcmem: as of June", *(f"   {hit.chunk.text}" for hit in then), sep="\n")

        model = TalkativeModel(messages=iter([AIMessage("Something with meat, without peanuts.")]))
        agent = create_agent(model, middleware=[MemoryMiddleware(memory, user_id="ana")])
        agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})


def show(title, items) -> None:  # noqa: ANN001
    """Prints the texts of items under a title."""
    print(title, *(f"   {item.value['text']}" for item in items), sep="\n")


if __name__ == "__main__":
    main()
