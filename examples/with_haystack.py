"""Haystack: the person on call changes, and a pipeline stops naming the old one.

    pip install 'gcmem[haystack]'
    python examples/with_haystack.py

Offline: keywords find the documents, and Haystack's mock model repeats its prompt.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import MockChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

from gcmem import Memory
from gcmem.integrations.haystack import GCMemRetriever, TemporalDominance

STORY = [
    ("2025-01-10T09:00:00Z", "The payments service is written in Go."),
    ("2025-02-01T09:00:00Z", "Omar is on call for payments."),
    ("2026-03-01T09:00:00Z", "Lena is on call for payments now, Omar has left the rota."),
]
QUESTION = "Who is on call for payments?"
TEMPLATE = "{% for d in documents %}{{ d.content }}\n{% endfor %}Question: {{ query }}"


def in_a_pipeline() -> None:
    """Puts the filter between the retriever and the prompt of a pipeline."""
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text, meta={"date": at}) for at, text in STORY])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    pipeline.add_component("dominance", TemporalDominance())
    prompt = ChatPromptBuilder([ChatMessage.from_user(TEMPLATE)], required_variables="*")
    pipeline.add_component("prompt", prompt)
    pipeline.add_component("model", MockChatGenerator())
    pipeline.connect("retriever", "dominance.documents")
    pipeline.connect("dominance.documents", "prompt.documents")
    pipeline.connect("prompt", "model")
    asked = {name: {"query": QUESTION} for name in ("retriever", "dominance", "prompt")}
    done = pipeline.run(asked, include_outputs_from={"retriever", "dominance"})
    print(f"pipeline, plain: {_texts(done['retriever']['documents'])}")
    print(f"pipeline, gcmem: {_texts(done['dominance']['documents'])}")
    for shadow in done["dominance"]["shadows"]:
        print(f"left out: {shadow.content} Since: {shadow.meta['shadowed_by']['text']}")
    print(f"the model read:\n{done['model']['replies'][0].text}")


def saved_and_loaded(path: Path) -> None:
    """Asks a memory through a pipeline that was saved as YAML and loaded again."""
    with Memory(path) as memory:
        memory.add([{"content": text, "at": at} for at, text in STORY], user_id="ops")
    pipeline = Pipeline()
    pipeline.add_component("memory", GCMemRetriever(path=str(path), user_id="ops", top_k=3))
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["gcmem.integrations.haystack"])
    found = loaded.run({"memory": {"query": QUESTION}})
    print(f"loaded from YAML: {_texts(found['memory']['documents'])}")
    loaded.close()


def _texts(documents: list[Document]) -> list[str]:
    return sorted(document.content or "" for document in documents)


def main() -> None:
    """Tells the story to a pipeline over documents, and to one over a memory."""
    in_a_pipeline()
    with tempfile.TemporaryDirectory() as folder:
        saved_and_loaded(Path(folder) / "memory.db")


if __name__ == "__main__":
    main()
