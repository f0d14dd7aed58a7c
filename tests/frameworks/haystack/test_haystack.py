from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.core.errors import SerializationError
from haystack.dataclasses import ByteStream
from haystack.document_stores.in_memory import InMemoryDocumentStore

from gcmem import Memory
from gcmem.errors import InvalidFilterError, InvalidInputError
from gcmem.integrations.haystack import GCMemRetriever, TemporalDominance
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
TRUSTED = ["gcmem.integrations.haystack", __name__]


@pytest.fixture(autouse=True)
def no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("haystack.telemetry._telemetry.telemetry", None)


class SavedRule(RuleOracle):
    """An oracle that can be saved with a pipeline."""

    id = "saved-rule@1"

    def __init__(self, separator: str) -> None:
        super().__init__(lambda a, b: a.text.split(separator)[0] == b.text.split(separator)[0])
        self.separator = separator

    def to_dict(self) -> dict[str, Any]:
        return {
            "type": f"{__name__}.SavedRule",
            "init_parameters": {"separator": self.separator},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SavedRule:
        return cls(**data["init_parameters"])


def document(text: str, number: float, **meta: Any) -> Document:
    return Document(content=text, meta={"date": day(number).isoformat(), **meta})


def texts(documents: list[Document]) -> set[str | None]:
    return {document.content for document in documents}


def run(pipeline: Pipeline, data: dict[str, Any], *, asynchronous: bool, **how: Any) -> Any:
    if asynchronous:
        return asyncio.run(pipeline.run_async(data, **how))
    return pipeline.run(data, **how)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("saved", [False, True])
def test_a_pipeline_reads_what_still_holds(asynchronous: bool, saved: bool) -> None:
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text, meta={"date": at}) for text, at in STORY])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    pipeline.add_component("dominance", TemporalDominance())
    pipeline.connect("retriever", "dominance.documents")
    if saved:
        pipeline = Pipeline.loads(pipeline.dumps(), allowed_modules=TRUSTED)
        # Documents in memory are no part of the YAML.
        pipeline.get_component("retriever").document_store = store
    done = run(
        pipeline,
        {"retriever": {"query": QUESTION}, "dominance": {"query": QUESTION}},
        asynchronous=asynchronous,
        include_outputs_from={"retriever"},
    )
    assert texts(done["retriever"]["documents"]) == {TRUE, STALE, NEW}
    assert texts(done["dominance"]["documents"]) == {TRUE, NEW}
    (shadow,) = done["dominance"]["shadows"]
    assert (shadow.content, shadow.meta["shadowed_by"]["text"]) == (STALE, NEW)


def test_the_callers_own_documents_come_back_in_their_order() -> None:
    documents = [document("x=2", 2), document("y=1", 0), document("x=1", 1)]
    done = TemporalDominance(**RULE).run(documents, "x")
    assert [id(kept) for kept in done["documents"]] == [id(kept) for kept in documents[:2]]
    assert "shadowed_by" not in documents[2].meta


def test_documents_without_a_text_or_a_time_stay() -> None:
    picture = Document(blob=ByteStream(b"hi", mime_type="image/png"))
    documents = [Document(content="x=1"), picture, document("x=2", 2)]
    assert TemporalDominance(**RULE).run(documents, "x") == {
        "documents": documents,
        "shadows": [],
    }


def test_annotated_documents_stay_in_place() -> None:
    documents = [document("x=1", 1), document("x=2", 2)]
    done = TemporalDominance(mode="annotate", **RULE).run(documents, "x")
    assert [found.content for found in done["documents"]] == ["x=1", "x=2"]
    assert done["documents"][0].meta["shadowed_by"] == {"id": documents[1].id, "text": "x=2"}


def test_the_time_key_can_be_named() -> None:
    documents = [
        document("x=1", 1, seen=day(9).isoformat()),
        document("x=2", 2, seen=day(3).isoformat()),
    ]
    done = TemporalDominance(time_key="seen", **RULE).run(documents, "x")
    assert texts(done["documents"]) == {"x=1"}


def test_components_survive_a_round_trip() -> None:
    filters = {"field": "meta.kind", "operator": "==", "value": "a"}
    for before in (
        TemporalDominance(time_key="seen", options=["a", "b"], mode="annotate"),
        GCMemRetriever(path="m.db", top_k=3, user_id="ana", filters=filters, mode="demote"),
    ):
        after = type(before).from_dict(before.to_dict())
        assert after.to_dict() == before.to_dict()
        for name in before.to_dict()["init_parameters"]:
            assert getattr(after, name) == getattr(before, name)


def test_an_oracle_is_saved_with_the_pipeline_where_it_can_be() -> None:
    pipeline = Pipeline()
    component = TemporalDominance(oracle=SavedRule(":"), require_qualified=False)
    pipeline.add_component("dominance", component)
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=TRUSTED)
    documents = [document("x:1", 1), document("x:2", 2)]
    done = loaded.run({"dominance": {"documents": documents, "query": "x"}})
    assert texts(done["dominance"]["documents"]) == {"x:2"}


def test_what_cannot_be_saved_says_so(memory: Memory) -> None:
    with pytest.raises(SerializationError, match=r"rule@1.*to_dict"):
        TemporalDominance(**RULE).to_dict()
    with pytest.raises(SerializationError, match="path"):
        GCMemRetriever(memory=memory).to_dict()
    with pytest.raises(InvalidInputError, match="memory or path"):
        GCMemRetriever()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_saved_retriever_finds_what_still_holds(tmp_path: Path, asynchronous: bool) -> None:
    path = tmp_path / "m.db"
    told(Memory(path)).close()

    def ask(**run_time: Any) -> set[str | None]:
        pipeline = Pipeline()
        mode = run_time.pop("mode", "drop")
        pipeline.add_component("memory", GCMemRetriever(path=str(path), user_id="acme", mode=mode))
        loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=TRUSTED)
        asked = {"memory": {"query": QUESTION, **run_time}}
        found = run(loaded, asked, asynchronous=asynchronous)["memory"]["documents"]
        loaded.close()
        assert loaded.get_component("memory").memory is None
        return texts(found)

    assert ask(mode="annotate") == {TRUE, STALE, NEW}
    assert ask() == {TRUE, NEW}
    assert ask(as_of=day(-200)) == {TRUE, STALE}
    assert ask(user_id="ben") == set()
    assert len(ask(top_k=1)) == 1


def test_a_memory_that_was_given_stays_open(memory: Memory) -> None:
    retriever = GCMemRetriever(memory=memory)
    retriever.close()
    assert retriever.run("x") == {"documents": []}


def test_excision_is_filled_up_to_top_k(memory: Memory) -> None:
    found = GCMemRetriever(memory=crowded(memory), top_k=4).run("x")["documents"]
    assert len(found) == 4
    assert [d.content for d in found if (d.content or "").startswith("x=")] == ["x=39"]


def test_haystacks_filters_are_understood(memory: Memory) -> None:
    memory.add("x=1", at=day(1), metadata={"kind": "a", "place": "lab"})
    memory.add("y=1", at=day(1), metadata={"kind": "b", "place": "lab"})
    is_a = {"field": "meta.kind", "operator": "==", "value": "a"}
    in_lab = {"field": "meta.place", "operator": "in", "value": ["lab", "hall"]}
    retriever = GCMemRetriever(memory=memory, filters={"kind": "b"})

    def found(filters: dict[str, Any] | None) -> set[str | None]:
        return texts(retriever.run("x", filters=filters)["documents"])

    assert found(None) == {"y=1"}
    assert found(is_a) == {"x=1"}
    assert found(in_lab) == {"x=1", "y=1"}
    assert found({"operator": "AND", "conditions": [is_a, in_lab]}) == {"x=1"}
    for unknown in (
        {"field": "meta.kind", "operator": ">", "value": 1},
        {"operator": "OR", "conditions": [is_a, in_lab]},
        {"operator": "AND", "conditions": [is_a, is_a]},
    ):
        with pytest.raises(InvalidFilterError, match="AND of them"):
            found(unknown)


def test_the_example_tells_the_story(tmp_path: Path) -> None:
    plain, resolved, left_out, *read, loaded = run_example("with_haystack.py", tmp_path)
    stale = "Omar is on call for payments."
    assert stale in plain
    assert stale in left_out
    for lines in ([resolved], read, [loaded]):
        told_now = "\n".join(lines)
        assert stale not in told_now
        assert "Lena is on call" in told_now
        assert "written in Go" in told_now


def test_the_code_in_the_docs_runs(tmp_path: Path) -> None:
    run_docs("Haystack", tmp_path)


def test_importing_gcmem_does_not_import_it(tmp_path: Path) -> None:
    assert not imported_with_gcmem("haystack", tmp_path)
