"""Random operations on this store and on LangGraph's own, which must not differ.

The oracle finds no conflict here, since that is where the two differ on purpose. Two habits of
InMemoryStore are left out of the comparison: it lists namespaces that hold nothing, and the order
of its unranked results is that of insertion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from gcmem import Memory
from gcmem.integrations.langgraph import GCMemStore
from gcmem.testing import HashEncoder, RuleOracle

LABELS = st.sampled_from(["a", "b", "c/d", "ü", "*"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k1", "k2", " ", "ключ"])
WORDS = st.sampled_from("red green blue salt pepper river stone north wind".split())
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["s", "t"])
VALUES = st.fixed_dictionaries(
    {"text": st.lists(WORDS, min_size=1, max_size=4).map(" ".join), "n": st.integers(-3, 3)},
    optional={"tag": SCALARS, "deep": st.fixed_dictionaries({"x": SCALARS, "y": SCALARS})},
)
CONDITIONS = st.one_of(
    st.none(),
    st.fixed_dictionaries({"tag": SCALARS}),
    st.fixed_dictionaries({"deep": st.fixed_dictionaries({"x": SCALARS})}),
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]).flatmap(
        lambda name: st.fixed_dictionaries({"n": st.fixed_dictionaries({name: st.just(0)})})
    ),
)
PUTS = st.builds(PutOp, NAMESPACES, KEYS, VALUES | st.none(), st.sampled_from([None, False]))
GETS = st.builds(GetOp, NAMESPACES, KEYS)
SEARCHES = st.builds(
    SearchOp,
    st.lists(LABELS, max_size=2).map(tuple),
    CONDITIONS,
    limit=st.just(100),
    query=st.none() | st.lists(WORDS, min_size=1, max_size=2).map(" ".join),
)
LISTINGS = st.builds(
    ListNamespacesOp,
    st.lists(
        st.builds(
            MatchCondition,
            st.sampled_from(["prefix", "suffix"]),
            st.lists(LABELS, min_size=1, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    st.none() | st.integers(1, 3),
    st.integers(1, 5),
    st.integers(0, 2),
)
OPERATIONS = st.lists(PUTS | PUTS | GETS | SEARCHES | LISTINGS, min_size=1, max_size=25)


def reference() -> InMemoryStore:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = HashEncoder().encode(texts).tolist()
        return vectors

    return InMemoryStore(index={"dims": 32, "embed": embed, "fields": ["text"]})


def live(store: InMemoryStore) -> InMemoryStore:
    """A fresh copy of what the store holds, without the namespaces that are empty."""
    copy = reference()
    for item in store.search((), limit=1000):
        copy.put(item.namespace, item.key, item.value)
    return copy


def comparable(op: Any, result: Any) -> Any:
    """What two stores must agree on; equally similar items may come in any order."""
    if isinstance(op, GetOp):
        return result and (result.namespace, result.key, result.value)
    if isinstance(op, SearchOp):
        shown = [(r.score and round(r.score, 4), r.namespace, r.key, r.value) for r in result]
        return sorted(shown, key=repr)
    return result


@settings(max_examples=80)
@given(operations=OPERATIONS, in_threads=st.booleans())
def test_both_stores_answer_alike(operations: list[Any], in_threads: bool) -> None:
    theirs = reference()
    with Memory(
        ":memory:", encoder=HashEncoder(), oracle=RuleOracle(lambda a, b: False),
        require_qualified=False,
    ) as memory:  # fmt: skip
        ours = GCMemStore(memory, fields=["text"])
        for op in operations:
            if isinstance(op, PutOp):
                # Theirs would keep the vector of the version that is replaced.
                theirs.batch([PutOp(op.namespace, op.key, None)])
            expected = (live(theirs) if isinstance(op, ListNamespacesOp) else theirs).batch([op])
            got = asyncio.run(ours.abatch([op])) if in_threads else ours.batch([op])
            assert comparable(op, got[0]) == comparable(op, expected[0])
            if isinstance(op, SearchOp):
                assert_pages_make_the_whole(ours, op, got[0])


def assert_pages_make_the_whole(store: GCMemStore, op: SearchOp, whole: list[Any]) -> None:
    if op.query:
        scores = [item.score for item in whole if item.score is not None]
        assert scores == sorted(scores, reverse=True)
        return
    pages = [store.batch([op._replace(limit=2, offset=n)])[0] for n in range(0, len(whole), 2)]
    assert [item.dict() for page in pages for item in page] == [item.dict() for item in whole]


@settings(max_examples=40)
@given(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=12), st.integers(1, 4))
def test_a_ranked_search_returns_its_limit_of_items(
    puts: list[tuple[str, dict[str, Any]]], limit: int
) -> None:
    with Memory(
        ":memory:", encoder=HashEncoder(), oracle=RuleOracle(lambda a, b: False),
        require_qualified=False,
    ) as memory:  # fmt: skip
        store = GCMemStore(memory, fields=["text"])
        for key, value in puts:
            store.put(("a",), key, value)
        found = store.search(("a",), query="red stone", limit=limit)
        assert len(found) == min(limit, len({key for key, _ in puts}))
        assert [item.value for item in found] == [dict(puts)[item.key] for item in found]
