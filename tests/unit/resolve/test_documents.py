from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from gcmem import Candidate, Chunk, Memory, Scope, resolve
from gcmem.errors import InvalidInputError
from gcmem.testing import RuleOracle
from tests.conftest import day, same_slot


@dataclass
class Page:
    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)


ORACLE = RuleOracle(same_slot)


@pytest.mark.parametrize(
    "documents",
    [
        [("x=1", day(1)), ("x=2", day(2)), ("y=1", day(0))],
        [
            {"text": "x=1", "created_at": "2026-01-02T00:00:00Z"},
            {"content": "x=2", "metadata": {"timestamp": 1767400000}},
            {"text": "y=1", "at": day(0)},
        ],
        [
            Page("x=1", {"date": "2026-01-02T00:00:00Z"}),
            Page("x=2", {"date": "2026-01-03T00:00:00Z"}),
            Page("y=1", {"date": "2026-01-01T00:00:00Z"}),
        ],
        [
            Chunk(id="a", text="x=1", at=day(1)),
            Chunk(id="b", text="x=2", at=day(2)),
            Chunk(id="c", text="y=1", at=day(0)),
        ],
    ],
)
def test_the_callers_own_objects_come_back_split(documents: list[Any]) -> None:
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    assert list(map(id, resolution.kept)) == list(map(id, documents[1:]))
    (shadow,) = resolution.shadows
    assert shadow.document is documents[0]
    assert shadow.witness is documents[1]
    assert resolution.undecided == ()


def test_documents_without_a_time_stay_and_are_reported() -> None:
    documents = ["x=1", {"text": "x=2"}, ("x=3", day(1))]
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    assert list(resolution.kept) == documents
    assert len(resolution.undecided) == 3


def test_the_time_key_can_be_named() -> None:
    documents = [
        Page("x=2", {"seen": day(2), "date": day(0)}),
        Page("x=1", {"seen": day(1), "date": day(3)}),
    ]
    assert resolve(documents, query="x", oracle=ORACLE, require_qualified=False).kept == (
        documents[1],
    )
    by_seen = resolve(documents, query="x", oracle=ORACLE, require_qualified=False, time_key="seen")
    assert by_seen.kept == (documents[0],)


def test_a_document_without_text_is_told() -> None:
    with pytest.raises(InvalidInputError, match="document 1"):
        resolve(["fine", object()], query="x", oracle=ORACLE, require_qualified=False)


@dataclass
class Blob:
    """As Haystack has it: content and meta."""

    content: str | None
    meta: dict[str, Any]


@dataclass
class Node:
    """As LlamaIndex has it: a text, or only a method that makes one."""

    metadata: dict[str, Any]
    body: str

    def get_content(self) -> str:
        return self.body


@dataclass
class Hit:
    node: Node
    score: float

    @property
    def text(self) -> str:
        raise ValueError("no text node")


def hit(text: str, at: datetime) -> Candidate:
    return Candidate(chunk=Chunk(id=text, text=text, at=at), relevance=1.0, origin="mtm")


@pytest.mark.parametrize(
    "documents",
    [
        [Blob("x=1", {"date": "2026-01-02"}), Blob("x=2", {"date": "2026-01-03"})],
        [Hit(Node({"date": "2026-01-02"}, "x=1"), 0.9), Hit(Node({"ts": 1767400000}, "x=2"), 0.8)],
        [(Page("x=1", {"at": day(1)}), 0.9), (Page("x=2", {"at": day(2)}), 0.8)],
        [{"payload": {"text": "x=1", "at": day(1)}}, {"payload": {"text": "x=2", "at": day(2)}}],
        [{"memory": "x=1", "created_at": day(1)}, {"memory": "x=2", "created_at": day(2)}],
        [hit("x=1", day(1)), hit("x=2", day(2))],
    ],
    ids=["meta", "node", "scored", "payload", "memory", "candidate"],
)
def test_hits_of_every_shape_are_read(documents: list[Any]) -> None:
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    assert [id(kept) for kept in resolution.kept] == [id(documents[1])]
    assert resolution.shadows[0].witness is documents[1]


@pytest.mark.parametrize(
    "when",
    [
        datetime(2026, 1, 2, 12, tzinfo=UTC),
        datetime(2026, 1, 2, 12),  # noqa: DTZ001
        date(2026, 1, 2),
        "2026-01-02",
        "2026-01-02T12:00:00",
        "2026-01-02T12:00:00+05:00",
        1767355200,
        1767355200.5,
        1767355200000,
        "1767355200",
    ],
    ids=repr,
)
def test_a_time_is_read_from_what_is_usual(when: Any) -> None:
    documents = [("x=0", day(0)), Page("x=1", {"timestamp": when}), ("x=2", day(2.5))]
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    assert list(resolution.kept) == [documents[2]]
    assert resolution.undecided == ()


@pytest.mark.parametrize("when", ["last Tuesday", 2026, 12.5, True, {"year": 2026}, "", 10**30])
def test_what_is_no_time_under_a_common_name_leaves_the_pair_undecided(when: Any) -> None:
    documents = [Page("x=1", {"date": when}), Page("x=2", {"date": day(2)})]
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    assert list(resolution.kept) == documents
    assert resolution.undecided == ((documents[0], documents[1]),)


def test_the_next_name_is_asked_where_one_holds_no_time() -> None:
    documents = [
        Page("x=2", {"date": "n/a", "last_modified": day(2)}),
        Page("x=1", {"time": 3, "published": day(1)}),
    ]
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    assert resolution.kept == (documents[0],)


def test_names_in_the_document_come_before_its_metadata_and_in_a_fixed_order() -> None:
    documents = [
        {"text": "x=2", "ts": day(2), "metadata": {"at": day(0)}},
        {"text": "x=1", "updated_at": day(3), "created_at": day(1)},
    ]
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    assert resolution.kept == (documents[0],)


def test_keys_can_be_functions_of_the_document() -> None:
    documents = [("a", 2, "x=2"), ("b", 1, "x=1")]
    resolution = resolve(
        documents,
        query="x",
        oracle=ORACLE,
        require_qualified=False,
        text_key=lambda row: row[2],
        time_key=lambda row: day(row[1]),
    )
    assert resolution.kept == (documents[0],)


def test_a_named_text_is_taken_before_the_usual_ones() -> None:
    documents = [{"text": "x=1", "said": "y=1", "at": day(1)}, {"said": "x=2", "at": day(2)}]
    resolution = resolve(
        documents, query="x", oracle=ORACLE, require_qualified=False, text_key="said"
    )
    assert list(resolution.kept) == documents
    with pytest.raises(InvalidInputError, match=r"document 0.*text_key"):
        resolve([{"text": "x"}], query="x", oracle=ORACLE, text_key="said")


def test_an_unreadable_time_under_a_named_key_is_told() -> None:
    with pytest.raises(InvalidInputError, match="document 0"):
        resolve([{"text": "x", "seen": "soon"}], query="x", oracle=ORACLE, time_key="seen")


def test_the_timezone_of_naive_times_can_be_named() -> None:
    documents = [("x=1", datetime(2026, 1, 2, 0, 0)), ("x=2", day(0.9))]  # noqa: DTZ001
    for tz, kept in ((UTC, documents[0]), (timezone(timedelta(hours=5)), documents[1])):
        resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False, tz=tz)
        assert resolution.kept == (kept,)


def test_documents_of_different_users_do_not_contradict_each_other() -> None:
    documents = [
        {"text": "x=1", "at": day(1), "metadata": {"user_id": "ana"}},
        {"text": "x=2", "at": day(2), "metadata": {"user_id": "bo"}},
        Chunk(id="c", text="x=3", at=day(3), scope=Scope(user_id="ana")),
    ]
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    assert list(resolution.kept) == documents[1:]


def test_an_oracle_that_remembers_verdicts_tells_documents_apart() -> None:
    with Memory(":memory:") as memory:
        stale, moved = ("I live in Porto.", day(1)), ("I no longer live in Porto.", day(2))
        cat, brother = ("My cat is called Miro.", day(1)), ("My brother lives in Braga.", day(2))
        for documents, kept in (((stale, moved), (moved,)), ((cat, brother), (cat, brother))):
            found = resolve(documents, query="Where do I live?", oracle=memory.oracle)
            assert found.kept == kept


def test_equal_documents_are_one_each_and_conflicts_name_positions() -> None:
    documents = [("x=1", day(1)), ("x=1", day(1)), ("x=2", day(2))]
    resolution = resolve(documents, query="x", oracle=ORACLE, require_qualified=False)
    named = [(s.conflict.older, s.conflict.newer) for s in resolution.shadows]
    assert resolution.kept == (documents[2],)
    assert sorted(named) == [("0", "2"), ("1", "2")]
