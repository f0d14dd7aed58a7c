from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from gcmem import Chunk, resolve
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
