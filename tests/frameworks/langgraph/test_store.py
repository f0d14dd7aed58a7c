from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from gcmem import Memory
from gcmem.errors import InvalidInputError, UnqualifiedOracleWarning
from gcmem.integrations.langchain import GCMemEmbeddings
from gcmem.integrations.langgraph import GCMemStore, user_of_namespace
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import same_slot
from tests.frameworks.story import CURRENT, QUESTION, STALE, STANDING, STORY

FACTS = ("ana", "facts")


@pytest.fixture
def store(memory: Memory) -> GCMemStore:
    return GCMemStore(memory)


@pytest.fixture(scope="module")
def told() -> Iterator[GCMemStore]:
    with Memory(":memory:") as memory:
        store = GCMemStore(memory, fields=["text"], time_key="at")
        for number, (text, at) in enumerate(STORY):
            store.put(FACTS, str(number), {"text": text, "at": at.isoformat()})
        yield store


def found(store: GCMemStore | InMemoryStore) -> set[str]:
    return {item.value["text"] for item in store.search(FACTS, query=QUESTION)}


async def test_langgraphs_own_store_returns_the_stale_fact_and_this_one_does_not(
    told: GCMemStore,
) -> None:
    plain = InMemoryStore(index={"dims": 384, "embed": GCMemEmbeddings(), "fields": ["text"]})
    for number, (text, _) in enumerate(STORY):
        plain.put(FACTS, str(number), {"text": text})
    assert found(plain) == {STALE, STANDING, CURRENT}
    assert found(told) == {STANDING, CURRENT}
    hits = await told.asearch(("ana",), query=QUESTION, limit=1)
    assert [hit.value["text"] for hit in hits] == [CURRENT]


async def test_a_contradicted_item_is_still_there_by_its_key(told: GCMemStore) -> None:
    item = await told.aget(FACTS, "0")
    assert item is not None
    assert item.value["text"] == STALE
    assert len(told.search(FACTS)) == 3


def test_what_a_put_replaces_stays_in_the_history_until_deleted(store: GCMemStore) -> None:
    store.put(FACTS, "x", {"text": "x=1"})
    store.put(FACTS, "x", {"text": "x=2"})
    history = store.memory.history(user_id=user_of_namespace(FACTS))
    assert [chunk.text for chunk in history] == ["x=1", "x=2"]
    assert [item.value for item in store.search(FACTS, query="x")] == [{"text": "x=2"}]
    store.delete(FACTS, "x")
    assert store.memory.get_all() == ()


def test_what_was_replaced_hides_nothing(store: GCMemStore) -> None:
    store.put(FACTS, "a", {"text": "x=1"})
    store.put(FACTS, "b", {"text": "x=2"})
    assert [item.key for item in store.search(FACTS, query="x")] == ["b"]
    store.put(FACTS, "b", {"text": "y=2"})
    assert {item.key for item in store.search(FACTS, query="x")} == {"a", "b"}


def test_contradicted_items_are_made_up_for_by_others(store: GCMemStore) -> None:
    for number in range(30):
        store.put(FACTS, f"x{number}", {"text": f"x={number}"})
    for number in range(3):
        store.put(FACTS, f"y{number}", {"text": f"y{number}=0"})
    found = store.search(FACTS, query="x", limit=3)
    assert len(found) == 3
    assert [item.key for item in found if item.key.startswith("x")] == ["x29"]


def test_a_filter_that_few_items_pass_finds_them(store: GCMemStore) -> None:
    for number in range(60):
        store.put(FACTS, str(number), {"text": f"x{number}=1", "rare": number == 7})
    found = store.search(FACTS, query="x", filter={"rare": True}, limit=1)
    assert [item.key for item in found] == ["7"]


def test_an_oracle_that_was_never_qualified_removes_nothing(tmp_path: Path) -> None:
    oracle = RuleOracle(same_slot)
    with pytest.warns(UnqualifiedOracleWarning):
        memory = Memory(tmp_path / "m.db", encoder=HashEncoder(), oracle=oracle)
    with memory:
        store = GCMemStore(memory)
        store.put(FACTS, "a", {"text": "x=1"})
        store.put(FACTS, "b", {"text": "x=2"})
        assert len(store.search(FACTS, query="x")) == 2


def test_namespaces_do_not_contradict_each_other_unless_one_user_owns_them(
    memory: Memory,
) -> None:
    for store, expected in (
        (GCMemStore(memory), 2),
        (GCMemStore(memory, user_of=lambda namespace: namespace[1]), 1),
    ):
        root = str(expected)
        store.put((root, "ana", "facts"), "k", {"text": "x=1"})
        store.put((root, "ana", "notes"), "k", {"text": "x=2"})
        assert len(store.search((root,), query="x")) == expected


def test_a_value_is_indexed_in_plain_words(store: GCMemStore) -> None:
    value = {"memory": "x=1", "home_town": "Porto", "tags": ["a", 2], "nothing": None}
    store.put(FACTS, "k", value)
    assert store.memory.get_all()[0].text == "x=1\nhome town: Porto\ntags: a\ntags: 2"


def test_items_that_are_not_indexed_come_last_and_without_a_score(store: GCMemStore) -> None:
    store.put(FACTS, "hidden", {"text": "x=1"}, index=False)
    store.put(FACTS, "seen", {"text": "y=1"})
    hits = store.search(FACTS, query="x=1")
    assert [(hit.key, hit.score is None) for hit in hits] == [("seen", False), ("hidden", True)]


def test_a_replaced_item_keeps_when_it_was_created(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        store = GCMemStore(memory)
        store.put(FACTS, "k", {"text": "one"})
        created = store.get(FACTS, "k")
        store.put(FACTS, "k", {"text": "two"})
        replaced = store.get(FACTS, "k")
    assert created is not None
    assert replaced is not None
    assert replaced.created_at == created.created_at == created.updated_at
    assert replaced.updated_at > created.updated_at


def test_reads_of_a_batch_see_what_was_there_before_it(store: GCMemStore) -> None:
    store.put(FACTS, "k", {"n": 1})
    results = store.batch(
        [
            PutOp(FACTS, "k", {"n": 2}),
            GetOp(FACTS, "k"),
            SearchOp(FACTS),
            PutOp(FACTS, "k", {"n": 3}),
        ]
    )
    assert results[0] is results[3] is None
    assert results[1].value == {"n": 1}
    assert [item.value for item in results[2]] == [{"n": 1}]
    item = store.get(FACTS, "k")
    assert item is not None
    assert item.value == {"n": 3}


def test_an_unknown_filter_operator_is_told(store: GCMemStore) -> None:
    store.put(FACTS, "k", {"n": 1})
    with pytest.raises(InvalidInputError, match=r"\$near"):
        store.search(FACTS, filter={"n": {"$near": 1}})


def test_a_long_namespace_and_other_chunks_of_the_memory_are_no_trouble(
    store: GCMemStore,
) -> None:
    store.memory.add("x=9")
    store.put(("a" * 300, "b/c"), "k", {"text": "x=1"})
    assert [item.value for item in store.search((), query="x")] == [{"text": "x=1"}]
    assert store.list_namespaces() == [("a" * 300, "b/c")]
