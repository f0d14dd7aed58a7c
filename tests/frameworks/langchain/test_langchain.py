from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from gcmem import Memory, SearchResult, resolve
from gcmem.integrations.langchain import (
    AddMemory,
    GCMemEmbeddings,
    GCMemRetriever,
    SearchMemory,
    TemporalDominance,
    memory_tools,
)
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import day, same_slot
from tests.frameworks.acme import crowded
from tests.frameworks.story import CURRENT, QUESTION, STALE, STANDING, STORY, told_memory


@pytest.fixture(scope="module")
def told() -> Memory:
    return told_memory()


@pytest.fixture(scope="module")
def plain() -> BaseRetriever:
    store = InMemoryVectorStore(GCMemEmbeddings())
    store.add_documents([Document(text, metadata={"date": at.isoformat()}) for text, at in STORY])
    return store.as_retriever(search_kwargs={"k": 3})


def texts(documents: list[Document]) -> set[str]:
    return {document.page_content for document in documents}


async def test_plain_retrieval_returns_the_stale_fact_and_the_filtered_does_not(
    plain: BaseRetriever,
) -> None:
    assert texts(plain.invoke(QUESTION)) == {STALE, STANDING, CURRENT}
    filtered = TemporalDominance().around(plain)
    assert texts(filtered.invoke(QUESTION)) == {STANDING, CURRENT}
    assert texts(await filtered.ainvoke(QUESTION)) == {STANDING, CURRENT}


async def test_the_filter_works_in_langchains_own_compression_retriever(
    plain: BaseRetriever,
) -> None:
    retriever = ContextualCompressionRetriever(
        base_retriever=plain, base_compressor=TemporalDominance()
    )
    assert texts(retriever.invoke(QUESTION)) == {STANDING, CURRENT}
    assert texts(await retriever.ainvoke(QUESTION)) == {STANDING, CURRENT}


async def test_the_memory_retriever_leaves_the_stale_fact_out(told: Memory) -> None:
    retriever = GCMemRetriever(memory=told, user_id="ana")
    assert texts(retriever.invoke(QUESTION)) == {STANDING, CURRENT}
    assert texts(await retriever.ainvoke(QUESTION)) == {STANDING, CURRENT}
    assert retriever.invoke(QUESTION, user_id="bo") == []
    assert texts(retriever.invoke(QUESTION, as_of=STORY[1][1])) == {STALE, STANDING}
    assert texts(await retriever.ainvoke(QUESTION, as_of=STORY[1][1])) == {STALE, STANDING}


def test_an_annotated_document_names_what_contradicts_it(told: Memory) -> None:
    documents = GCMemRetriever(memory=told, user_id="ana", mode="annotate").invoke(QUESTION)
    proofs = {d.page_content: d.metadata.get("shadowed_by", {}).get("text") for d in documents}
    assert proofs == {STALE: CURRENT, STANDING: None, CURRENT: None}


def test_what_was_retrieved_from_memory_can_be_resolved_again(told: Memory) -> None:
    documents = GCMemRetriever(memory=told, user_id="ana", mode="annotate").invoke(QUESTION)
    assert texts(list(resolve(documents, query=QUESTION).kept)) == {STANDING, CURRENT}


def test_excision_is_filled_up_to_k(memory: Memory) -> None:
    found = GCMemRetriever(memory=crowded(memory), k=4).invoke("x")
    assert len(found) == 4
    assert [d.page_content for d in found if d.page_content.startswith("x=")] == ["x=39"]
    assert len(GCMemRetriever(memory=memory, k=20).invoke("x")) == 6


def dominance(**fields: Any) -> TemporalDominance:
    return TemporalDominance(oracle=RuleOracle(same_slot), require_qualified=False, **fields)


async def test_the_filter_keeps_the_same_documents_in_their_order() -> None:
    documents = [
        Document("x=2", metadata={"seen": day(2)}),
        Document("x=1", metadata={"seen": day(1)}),
        Document("y=1", metadata={"seen": day(0)}),
    ]
    by_seen = dominance(time_key="seen")
    for kept in (
        by_seen.compress_documents(documents, "x"),
        await by_seen.acompress_documents(documents, "x"),
        by_seen.transform_documents(documents),
        await by_seen.atransform_documents(documents, query="x"),
    ):
        assert list(map(id, kept)) == [id(documents[0]), id(documents[2])]
    annotated = dominance(time_key="seen", mode="annotate").compress_documents(documents, "x")
    assert [d.metadata.get("shadowed_by") for d in annotated] == [
        None,
        {"id": None, "text": "x=2"},
        None,
    ]
    assert "shadowed_by" not in documents[1].metadata


async def test_a_model_remembers_and_recalls_in_its_own_scope(memory: Memory) -> None:
    add, search = memory_tools(memory, user_id="ana")
    assert isinstance(add, AddMemory)
    assert isinstance(search, SearchMemory)
    assert search.invoke({"query": "x"}) == "Nothing is known about this."
    add.invoke({"text": "x=1", "at": "2026-01-02T00:00:00Z"})
    await add.ainvoke({"text": "x=2", "at": "2026-01-03T00:00:00Z"})
    assert search.invoke({"query": "x"}) == "- [2026-01-03] x=2"
    earlier = {"query": "x", "as_of": "2026-01-02T12:00:00Z"}
    assert await search.ainvoke(earlier) == "- [2026-01-02] x=1"
    call = {"name": search.name, "args": {"query": "x"}, "id": "1", "type": "tool_call"}
    found = search.invoke(call).artifact
    assert isinstance(found, SearchResult)
    assert found.shadows[0].witness.chunk.text == "x=2"
    assert memory.get_all(user_id="ana") == memory.get_all()


def test_a_tool_tells_the_model_what_was_wrong(memory: Memory) -> None:
    add, search = memory_tools(memory)
    assert "timezone" in add.invoke({"text": "x=1", "at": "2026-01-02T00:00:00"})
    assert "can't read the time" in search.invoke({"query": "x", "as_of": "yesterday"})
    assert memory.get_all() == ()


def test_embeddings_are_those_of_the_encoder() -> None:
    embeddings = GCMemEmbeddings(HashEncoder())
    assert embeddings.embed_query("a b") == HashEncoder().encode(["a b"])[0].tolist()
