"""LlamaIndex: a customer changes plans, and a query engine stops reading the old one.

    pip install 'gcmem[llamaindex]'
    python examples/with_llamaindex.py

Offline: gcmem's encoder embeds, and LlamaIndex's mock model repeats what it was asked.
"""

from __future__ import annotations

import asyncio

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory as ChatMemory

from gcmem import Memory
from gcmem.defaults import default_encoder
from gcmem.integrations.llamaindex import GCMemBlock, GCMemRetriever, TemporalDominance

STORY = [
    ("2025-01-10T09:00:00Z", "Acme's billing contact is Priya."),
    ("2025-02-01T09:00:00Z", "Acme is on the Basic plan."),
    ("2026-03-01T09:00:00Z", "Acme upgraded to the Enterprise plan."),
]
QUESTION = "Which plan is Acme on?"


class ShippedEmbedding(BaseEmbedding):
    """The encoder that ships with gcmem, as a LlamaIndex embedding."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector: list[float] = default_encoder().encode([text])[0].tolist()
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def in_an_index() -> None:
    """Puts the filter behind the retriever of an index that is there already."""
    documents = [Document(text=text, metadata={"date": at}) for at, text in STORY]
    index = VectorStoreIndex.from_documents(documents, embed_model=ShippedEmbedding())
    for name, filters in (("plain", []), ("gcmem", [TemporalDominance()])):
        engine = index.as_query_engine(
            llm=MockLLM(), similarity_top_k=3, node_postprocessors=filters
        )
        answer = engine.query(QUESTION)
        print(f"index, {name}: {sorted(hit.node.text for hit in answer.source_nodes)}")


async def in_a_chat(memory: Memory) -> None:
    """Asks a memory, through a retriever and as a block of a chat memory."""
    retriever = GCMemRetriever(memory, user_id="acme", k=3)
    nodes = await retriever.aretrieve(QUESTION)
    print(f"retriever: {sorted(hit.node.text for hit in nodes)}")
    block = GCMemBlock(memory=memory, user_id="acme")
    chat = ChatMemory.from_defaults(session_id="s1", memory_blocks=[block])
    await chat.aput(ChatMessage(role="user", content=QUESTION))
    print(f"chat memory:\n{((await chat.aget())[0].content or '').strip()}")


def main() -> None:
    """Tells the story three times: to an index, to a retriever, to a chat memory."""
    in_an_index()
    with Memory(":memory:") as memory:
        memory.add([{"content": text, "at": at} for at, text in STORY], user_id="acme")
        asyncio.run(in_a_chat(memory))


if __name__ == "__main__":
    main()
