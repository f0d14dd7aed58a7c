from __future__ import annotations

from datetime import timedelta

import pytest

from gcmem import Candidate, CandidateSet, Chunk, Conflict, temporal_dominance
from gcmem.errors import InvalidInputError
from gcmem.resolve import MultiFactor, multi_factor, standard, time_decay, timestamp_rerank
from tests.conftest import day


def item(name: str, *, on: float | None, relevance: float) -> Candidate:
    chunk = Chunk(id=name, text=name, at=None if on is None else day(on))
    return Candidate(chunk=chunk, relevance=relevance, origin="mtm")


SET = CandidateSet(
    query="q",
    items=(
        item("old", on=0, relevance=0.9),
        item("new", on=60, relevance=0.8),
        item("undated", on=None, relevance=0.1),
    ),
)


def order(resolution: object) -> list[str]:
    return [c.chunk.id for c in resolution.kept]  # type: ignore[attr-defined]


def test_baselines_rank_and_never_remove() -> None:
    assert order(standard(SET)) == ["old", "new", "undated"]
    assert order(timestamp_rerank(SET)) == ["new", "old", "undated"]
    assert order(time_decay(half_life=timedelta(days=30))(SET, ())) == ["new", "old", "undated"]
    assert order(time_decay(half_life=timedelta(days=3000))(SET, ())) == ["old", "new", "undated"]


def test_usage_and_stability_favour_what_is_old() -> None:
    fair = MultiFactor(recency=0.5, relevance=0.5, usage=0, stability=0)
    assert order(multi_factor(fair)(SET, ()))[0] == "new"
    entrenched = MultiFactor(recency=0.25, relevance=0.25, usage=0.25, stability=0.25)
    assert order(multi_factor(entrenched, usage={"old": 9, "new": 1})(SET, ()))[0] == "old"


def test_an_oracle_that_judges_foreign_chunks_is_told() -> None:
    def verdict(older: str, newer: str) -> Conflict:
        return Conflict(older=older, newer=newer, score=1.0, oracle="x")

    with pytest.raises(InvalidInputError, match="not in the candidate set"):
        temporal_dominance(SET, [verdict("old", "elsewhere")])
    with pytest.raises(InvalidInputError, match="itself"):
        temporal_dominance(SET, [verdict("old", "old")])
    with pytest.raises(InvalidInputError, match="twice"):
        CandidateSet(query="q", items=(SET.items[0], SET.items[0]))


def test_the_witness_is_a_live_chunk_where_there_is_one() -> None:
    chain = CandidateSet(
        query="q", items=tuple(item(name, on=n, relevance=0.5) for n, name in enumerate("abc"))
    )
    verdicts = [
        Conflict(older="a", newer="b", score=0.99, oracle="x"),
        Conflict(older="b", newer="c", score=0.9, oracle="x"),
        Conflict(older="a", newer="c", score=0.6, oracle="x"),
    ]
    shadows = temporal_dominance(chain, verdicts).shadows
    assert [(s.candidate.chunk.id, s.witness.chunk.id) for s in shadows] == [("a", "c"), ("b", "c")]
