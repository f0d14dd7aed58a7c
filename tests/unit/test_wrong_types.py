"""Wrong types and values, given to every argument of the public surface: an error of gcmem's own.

The callers that this table stands for are agents: what they pass was made up by a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gcmem import CandidateSet, Chunk, Memory, Scope, Settings, Turn, reindex, resolve
from gcmem.errors import GCMemError, InvalidFilterError, InvalidInputError
from gcmem.store.postgres import open_postgres
from gcmem.store.urls import open_store
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import NOW, day, same_slot

JUNK: dict[str, Any] = {
    "none": None,
    "true": True,
    "number": 5,
    "negative": -1,
    "large": 2**63,
    "huge": 10**400,
    "float": 1.5,
    "nan": math.nan,
    "infinite": math.inf,
    "bytes": b"x",
    "empty": "",
    "NUL": "a\x00b",
    "surrogate": "\ud800",
    "word": "word",
    "object": object(),
    "class": int,
    "list": [],
    "list of numbers": [5],
    "list of none": [None],
    "list of lists": [[]],
    "set": {"a"},
    "dict": {},
    "dict of numbers": {5: 5},
    "dict of objects": {"a": object()},
    "naive": datetime(2026, 1, 1),  # noqa: DTZ001
    "aware": day(1),
    "generator": iter(()),
    "function": lambda: None,
}
SCOPE = ("user_id", "agent_id", "run_id")
READ = (*SCOPE, "as_of", "known_at", "filters")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "add": ("messages", *SCOPE, "at", "speaker", "session", "metadata", "trust"),
    "search": ("query", *READ, "k", "mode", "options"),
    "ask": ("question", *READ, "options", "k", "path", "mode"),
    "ask_paths": ("question", *READ, "options", "k", "paths", "mode"),
    "get": ("chunk_id", *SCOPE),
    "get_all": (*SCOPE, "filters", "limit", "after_seq"),
    "history": (*READ, "newest_first", "limit"),
    "update": ("chunk_id", *SCOPE, "metadata"),
    "delete": ("chunk_id", *SCOPE),
    "forget": ("ids", *SCOPE, "filters"),
    "judge": ("limit", "progress"),
    "pin": ("chunk_id", *SCOPE, "by"),
    "confirm": ("older", "newer", *SCOPE, "by", "reason"),
    "current": (*SCOPE, "as_of", "filters", "limit", "after"),
    "resolve": ("candidates",),
}
NEEDED: dict[str, dict[str, Any]] = {
    "add": {"messages": "I drink tea."},
    "search": {"query": "tea"},
    "ask": {"question": "tea?"},
    "ask_paths": {"question": "tea?"},
    "get": {"chunk_id": "x"},
    "update": {"chunk_id": "x", "metadata": {}},
    "delete": {"chunk_id": "x"},
    "forget": {"ids": ["x"]},
    "pin": {"chunk_id": "x"},
    "confirm": {"older": "x", "newer": "y"},
    "resolve": {"candidates": CandidateSet(query="q", items=())},
}
CASES = [(method, name) for method, names in ARGUMENTS.items() for name in names]


def surprise(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str | None:
    """Returns what a call raised that is not gcmem's own, or None."""
    try:
        call(*args, **kwargs)
    except GCMemError as error:
        str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.fixture(scope="module", params=["sqlite", "postgres", "qdrant"])
def any_memory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Memory]:
    encoder = HashEncoder()
    store = None
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").make_schema()
        store = open_postgres(url, encoder=encoder, stm_size=5)
    elif request.param == "qdrant":
        store = open_store(
            "sqlite:///:memory:?index=qdrant://:memory:", encoder=encoder, stm_size=5
        )
    with Memory(
        tmp_path_factory.mktemp("junk") / "m.db" if store is None else None,
        store=store,
        encoder=encoder,
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        clock=lambda: NOW,
    ) as memory:
        memory.add("I drink tea.", user_id="ana")
        yield memory


@pytest.mark.parametrize(("method", "name"), CASES)
def test_no_argument_raises_anything_raw(any_memory: Memory, method: str, name: str) -> None:
    raw = {}
    for kind, junk in JUNK.items():
        arguments = {**NEEDED.get(method, {}), name: junk}
        raw[kind] = surprise(getattr(any_memory, method), **arguments)
    assert {kind: error for kind, error in raw.items() if error} == {}


@pytest.mark.parametrize("field", ["text", "at", "speaker", "session", "metadata"])
def test_no_field_of_a_turn_raises_anything_raw(any_memory: Memory, field: str) -> None:
    def add_turn(junk: Any) -> None:
        any_memory.add(Turn(**{"text": "tea", field: junk}))

    def add_dict(junk: Any) -> None:
        any_memory.add([{"content": "tea", field: junk}])

    raw = {}
    for kind, junk in JUNK.items():
        raw[kind] = surprise(add_turn, junk)
        raw[f"{kind} in a dict"] = surprise(add_dict, junk)
    assert {kind: error for kind, error in raw.items() if error} == {}


@pytest.mark.parametrize(
    "name",
    ["documents", "query", "oracle", "options", "text_key", "time_key", "tz"],
)
def test_no_argument_of_resolve_raises_anything_raw(name: str) -> None:
    given: dict[str, Any] = {
        "documents": [("a=1", day(1)), ("a=2", day(2))],
        "query": "a",
        "oracle": RuleOracle(same_slot),
        "require_qualified": False,
    }
    raw: dict[str, str | None] = {}
    for kind, junk in JUNK.items():
        if name.endswith("_key") and callable(junk):
            continue  # the caller's own function, and its own errors
        for shape in ({name: junk}, {"documents": [junk, {"text": junk, "at": junk}]}):
            raw[kind] = raw.get(kind) or surprise(resolve, **{**given, **shape})
    assert {kind: error for kind, error in raw.items() if error} == {}


def test_no_value_type_raises_anything_raw() -> None:
    made: dict[type, tuple[dict[str, Any], tuple[str, ...]]] = {
        Turn: ({"text": "a"}, ("text", "at", "speaker", "session", "metadata")),
        Chunk: ({"id": "a", "text": "a", "at": NOW}, ("at", "recorded_at", "metadata")),
        Scope: ({}, SCOPE),
        Settings: (
            {},
            (
                "chunk_tokens", "max_text_chars", "max_metadata_bytes", "max_future", "max_skew",
                "strategy", "frontier", "stm_size", "overfetch", "respect_trust",
            ),
        ),
        CandidateSet: ({"query": "a", "items": ()}, ("query", "items", "options")),
    }  # fmt: skip
    raw = {}
    for cls, (needed, fields) in made.items():
        for field in fields:
            for kind, junk in JUNK.items():
                error = surprise(cls, **{**needed, field: junk})
                if error:
                    raw[f"{cls.__name__}.{field}, {kind}"] = error
    assert raw == {}


def test_no_store_argument_raises_anything_raw(tmp_path: Path) -> None:
    raw = {}
    for kind, junk in JUNK.items():
        if isinstance(junk, str) or junk is None:
            continue  # a name of a file, or the default one
        raw[kind] = (
            surprise(Memory, junk, encoder=HashEncoder())
            or surprise(Memory.from_url, junk, encoder=HashEncoder())
            or surprise(reindex, junk, encoder=HashEncoder())
        )
    assert {kind: error for kind, error in raw.items() if error} == {}


def test_a_speaker_of_none_is_the_default_one(any_memory: Memory) -> None:
    (chunk,) = any_memory.add(Turn(text="tea", speaker=None))  # type: ignore[arg-type]
    assert any_memory.get(chunk.id).speaker == "user"
    (chunk,) = any_memory.add(Turn(text="tea", speaker=None), speaker="Ana")  # type: ignore[arg-type]
    assert any_memory.get(chunk.id).speaker == "Ana"


def test_metadata_of_none_is_no_metadata(any_memory: Memory) -> None:
    (chunk,) = any_memory.add(Turn(text="tea", metadata=None))  # type: ignore[arg-type]
    assert any_memory.get(chunk.id).metadata == {}
    (chunk,) = any_memory.add({"content": "tea", "metadata": None}, metadata={"a": 1})
    assert any_memory.get(chunk.id).metadata == {"a": 1}


@pytest.mark.parametrize("ids", [5, "abc", [5], {"a": 1}, [None], b"abc"])
def test_what_to_forget_is_a_list_of_ids(any_memory: Memory, ids: Any) -> None:
    before = len(any_memory.get_all())
    with pytest.raises(InvalidInputError, match="ids"):
        any_memory.forget(ids=ids)
    assert len(any_memory.get_all()) == before


@pytest.mark.parametrize("after_seq", [-1, 2**63, 1.5, "3", None, True])
def test_a_page_is_continued_after_a_sequence_number(any_memory: Memory, after_seq: Any) -> None:
    with pytest.raises(InvalidInputError, match="after_seq"):
        any_memory.get_all(after_seq=after_seq)
    assert any_memory.get_all(after_seq=2**63 - 1) == ()


def test_a_filter_has_a_limit_that_every_store_can_answer(any_memory: Memory) -> None:
    for filters in (
        {"a": [str(n) for n in range(40_000)]},
        {"a": list(range(501))},
        {"a": list(range(300)), "b": list(range(300))},
        {f"k{n}": n for n in range(51)},
    ):
        for call in (
            lambda f=filters: any_memory.search("tea", filters=f),
            lambda f=filters: any_memory.get_all(filters=f),
            lambda f=filters: any_memory.forget(filters=f),
        ):
            with pytest.raises(InvalidFilterError, match="at most"):
                call()
    (chunk,) = any_memory.add("tea", metadata={f"k{n}": n for n in range(50)})
    most = {f"k{n}": [n, *(str(i) for i in range(9))] for n in range(50)}
    assert any_memory.get_all(filters=most) == (chunk,)
    assert any_memory.get_all(filters={"k7": [7, *(str(n) for n in range(499))]}) == (chunk,)
    assert len(any_memory.search("tea", filters=most).candidates) == 1
