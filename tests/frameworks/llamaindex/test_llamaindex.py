from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory as ChatMemory
from llama_index.core.schema import ImageNode, NodeWithScore, TextNode
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import StaticPool

from gcmem import Memory
from gcmem.integrations.llamaindex import GCMemBlock, GCMemRetriever, TemporalDominance
from gcmem.testing import RuleOracle
from tests.conftest import day, same_slot
from tests.frameworks.acme import (
    NEW,
    QUESTION,
    STALE,
    STORY,
    TRUE,
    crowded,
    imported_with_gcmem,
    run_docs,
    run_example,
    told,
)

RULE: dict[str, Any] = {"oracle": RuleOracle(same_slot), "require_qualified": False}


def node(text: str, number: float, **metadata: Any) -> NodeWithScore:
    at = {"date": day(number).isoformat()}
    return NodeWithScore(node=TextNode(text=text, metadata={**at, **metadata}), score=0.5)


def texts(nodes: list[NodeWithScore]) -> list[str]:
    return [hit.node.text for hit in nodes]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_query_engine_reads_what_still_holds(asynchronous: bool) -> None:
    nodes = [TextNode(text=text, metadata={"date": at}) for text, at in STORY]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))

    def ask(*filters: TemporalDominance) -> Any:
        engine = index.as_query_engine(
            llm=MockLLM(), similarity_top_k=3, node_postprocessors=list(filters)
        )
        return asyncio.run(engine.aquery(QUESTION)) if asynchronous else engine.query(QUESTION)

    plain, resolved = ask(), ask(TemporalDominance())
    assert set(texts(plain.source_nodes)) == {TRUE, STALE, NEW}
    assert set(texts(resolved.source_nodes)) == {TRUE, NEW}
    assert STALE in str(plain)  # the mock model repeats its prompt
    assert STALE not in str(resolved)


def test_the_callers_own_nodes_come_back_in_their_order() -> None:
    nodes = [node("x=2", 2), node("y=1", 0), node("x=1", 1)]
    kept = TemporalDominance(**RULE).postprocess_nodes(nodes, query_str="x")
    assert [id(hit) for hit in kept] == [id(hit) for hit in nodes[:2]]


def test_a_query_is_not_needed() -> None:
    kept = TemporalDominance(**RULE).postprocess_nodes([node("x=1", 1), node("x=2", 2)])
    assert texts(kept) == ["x=2"]


def test_the_time_key_can_be_named() -> None:
    nodes = [node("x=1", 1, seen=day(9).isoformat()), node("x=2", 2, seen=day(3).isoformat())]
    kept = TemporalDominance(time_key="seen", **RULE).postprocess_nodes(nodes)
    assert texts(kept) == ["x=1"]


def test_nodes_without_a_text_or_a_time_stay() -> None:
    undated = NodeWithScore(node=TextNode(text="x=1"))
    picture = NodeWithScore(node=ImageNode(image="aGk="))
    nodes = [undated, picture, node("x=2", 2)]
    assert TemporalDominance(**RULE).postprocess_nodes(nodes) == nodes


def test_annotated_nodes_name_the_newer_one_and_the_index_keeps_its_own() -> None:
    old, new = node("x=1", 1), node("x=2", 2)
    shown = TemporalDominance(mode="annotate", **RULE).postprocess_nodes([old, new])
    assert shown[0].node.metadata["shadowed_by"] == {"id": new.node.node_id, "text": "x=2"}
    assert shown[1] is new
    assert "shadowed_by" not in old.node.metadata


def test_a_postprocessor_survives_a_round_trip() -> None:
    before = TemporalDominance(time_key="seen", options=("a", "b"), mode="annotate")
    assert TemporalDominance.from_dict(before.to_dict()).to_dict() == before.to_dict()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_retriever_finds_what_still_holds(asynchronous: bool) -> None:
    with told(Memory(":memory:")) as memory:

        def ask(**search: Any) -> Any:
            retriever = GCMemRetriever(memory, user_id="acme", k=3, **search)
            if asynchronous:
                return asyncio.run(retriever.aretrieve(QUESTION))
            return retriever.retrieve(QUESTION)

        assert set(texts(ask(mode="annotate"))) == {TRUE, STALE, NEW}
        found = ask()
        assert set(texts(found)) == {TRUE, NEW}
        assert found[0].node.metadata["user_id"] == "acme"
        assert "user_id" not in found[0].node.get_content("llm")
        assert set(texts(ask(as_of=day(-200)))) == {TRUE, STALE}


def test_a_retriever_stays_in_its_scope(memory: Memory) -> None:
    memory.add("x=1", user_id="ana", at=day(1), metadata={"kind": "a"})
    memory.add("x=2", user_id="ben", at=day(2))
    assert texts(GCMemRetriever(memory, user_id="ana").retrieve("x")) == ["x=1"]
    assert texts(GCMemRetriever(memory, filters={"kind": "b"}).retrieve("x")) == []


def test_excision_is_filled_up_to_k(memory: Memory) -> None:
    found = texts(GCMemRetriever(crowded(memory), k=4).retrieve("x"))
    assert len(found) == 4
    assert [text for text in found if text.startswith("x=")] == ["x=39"]
    told = asyncio.run(GCMemBlock(memory=memory, k=4).aget([ChatMessage(content="x")]))
    assert len(told.splitlines()) == 4


def test_annotated_nodes_of_a_memory_name_the_newer_one(memory: Memory) -> None:
    memory.add("x=1", at=day(1))
    (newer,) = memory.add("x=2", at=day(2))
    found = GCMemRetriever(memory, mode="annotate").retrieve("x")
    proofs = {hit.node.text: hit.node.metadata.get("shadowed_by") for hit in found}
    assert proofs == {"x=1": {"id": newer.id, "text": "x=2"}, "x=2": None}


def said(text: str, number: float | None = None, *, role: str = "user") -> ChatMessage:
    at = {} if number is None else {"at": day(number).isoformat()}
    return ChatMessage(role=role, content=text, additional_kwargs=at)


def block(memory: Memory, **fields: Any) -> GCMemBlock:
    return GCMemBlock(memory=memory, user_id="ana", require_qualified=False, **fields)


@pytest.fixture
def engine() -> Iterator[Any]:
    """The database of a chat memory, which LlamaIndex itself would leave open."""
    engine = create_async_engine("sqlite+aiosqlite:///:memory:", poolclass=StaticPool)
    yield engine
    asyncio.run(engine.dispose())


def test_what_leaves_the_chat_is_remembered_and_resolved(memory: Memory, engine: Any) -> None:
    chat = ChatMemory.from_defaults(
        session_id="s1",
        token_limit=40,
        token_flush_size=1,
        memory_blocks=[block(memory)],
        async_engine=engine,
    )
    for number, text in enumerate(["y=1", "x=1", "x=2"]):
        chat.put(said(text, number))
        chat.put(said("noted " * 15, number, role="assistant"))
    chat.put(said("x"))
    stored = memory.get_all(user_id="ana")
    assert [(chunk.text, chunk.at, chunk.session) for chunk in stored] == [
        ("y=1", day(0), "s1"),
        ("x=1", day(1), "s1"),
        ("x=2", day(2), "s1"),
    ]
    (system, *_) = chat.get()
    assert "x=2" in system.content
    assert "y=1" in system.content
    assert "x=1" not in system.content


def test_a_message_still_in_the_chat_contradicts_what_is_remembered(memory: Memory) -> None:
    memory.add(["x=1", "y=1"], user_id="ana", at=day(1))
    chat = [said("x=2"), said("Anything new?", role="assistant"), said("x")]
    assert asyncio.run(block(memory).aget(chat)) == "- [2026-01-02] y=1"
    alone = asyncio.run(block(memory, recent=0).aget(chat))
    assert sorted(alone.splitlines()) == ["- [2026-01-02] x=1", "- [2026-01-02] y=1"]


def test_an_older_message_in_the_chat_contradicts_nothing(memory: Memory) -> None:
    memory.add("x=2", user_id="ana", at=day(2))
    chat = [said("x=1", 1), said("x")]
    assert asyncio.run(block(memory).aget(chat)) == "- [2026-01-03] x=2"


def test_a_message_said_twice_in_the_chat_is_one_witness(memory: Memory) -> None:
    memory.add("x=1", user_id="ana", at=day(1))
    assert asyncio.run(block(memory).aget([said("x=2"), said("x=2"), said("x")])) == ""


def test_verdicts_on_the_chat_are_not_taken_for_others() -> None:
    with Memory(":memory:") as memory:
        memory.add(TRUE, user_id="ana", at=day(-300))
        facts = GCMemBlock(memory=memory, user_id="ana")
        for text in ("The sky is blue.", NEW, "Acme is on the Premium plan now."):
            told_now = asyncio.run(facts.aget([said(text), said(QUESTION)]))
            assert TRUE in told_now, text


def test_who_is_kept_can_be_chosen(memory: Memory) -> None:
    messages = [said("x=1", 1), said("z=1", 2, role="assistant"), said("t", role="tool")]
    asyncio.run(block(memory).aput(messages))
    asyncio.run(block(memory, roles=("assistant",)).aput(messages))
    stored = memory.get_all(user_id="ana")
    assert [(chunk.text, chunk.speaker) for chunk in stored] == [
        ("x=1", "user"),
        ("z=1", "assistant"),
    ]


def test_a_block_without_a_question_says_nothing(memory: Memory) -> None:
    memory.add("x=1", user_id="ana", at=day(1))
    assert asyncio.run(block(memory).aget([])) == ""
    assert asyncio.run(block(memory).aget([said("Hello!", role="assistant")])) == ""


def test_the_example_tells_the_story(tmp_path: Path) -> None:
    lines = run_example("with_llamaindex.py", tmp_path)
    assert STALE in lines[0]
    assert not any(STALE in line for line in lines[1:])
    assert sum(TRUE in line for line in lines) == sum(NEW in line for line in lines) == 4


def test_the_code_in_the_docs_runs(tmp_path: Path) -> None:
    run_docs("LlamaIndex", tmp_path)


def test_importing_gcmem_does_not_import_it(tmp_path: Path) -> None:
    assert not imported_with_gcmem("llama_index", tmp_path)
