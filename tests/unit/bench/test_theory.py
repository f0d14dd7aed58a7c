from __future__ import annotations

from pathlib import Path

import pytest

from gcmem.answer import LocalReader
from gcmem.bench.data.shipped import shipped
from gcmem.bench.theory.epsilon import epsilon
from gcmem.bench.theory.report import write_theory
from gcmem.bench.theory.theorems import METHODS, recall_rows, stale_rows
from gcmem.errors import InvalidInputError
from gcmem.testing import HashEncoder

ENCODER = HashEncoder(dimensions=128)


def test_recall_of_the_new_state_falls_for_dense_and_holds_along_edges(tmp_path: Path) -> None:
    rows, standing = recall_rows(ENCODER, style="stated", lengths=(1, 500), after=(0, 30))
    found = {(row.old, row.method): row for row in rows}
    assert {row.method for row in rows} == set(METHODS)
    assert found[500, "dense"].recall < found[1, "dense"].recall
    assert found[500, "stratified"].recall > found[500, "dense"].recall
    assert found[500, "stratified+edges"].recall >= found[500, "stratified"].recall
    assert all(row.candidates <= 30 for row in rows)
    assert found[500, "dense"].predicted == pytest.approx(10 / 501, abs=1e-4)
    kept = {row.method: row.found for row in standing}
    assert kept["stratified"] >= kept["dense"]
    stale = stale_rows(ENCODER, style="stated", old=40, ks=(1, 5))
    written = write_theory(tmp_path, rows, standing, stale, encoder=ENCODER.id)
    assert all(path.stat().st_size > 100 for path in written)
    assert {path.suffix for path in written} == {".csv", ".md", ".json", ".svg", ".png"}


def test_the_stale_vote_follows_the_theorem_and_dominance_ends_it() -> None:
    rows = stale_rows(ENCODER, style="stated", old=60, ks=(1, 2, 10))
    for row in rows:
        assert row.vote == pytest.approx(row.predicted, abs=0.02)
        assert row.after_gold == 0
        assert row.recovered == 1
        assert row.reader_stale is None


def test_a_reader_of_many_stale_chunks_answers_stale() -> None:
    rows = stale_rows(ENCODER, style="stated", old=60, ks=(1, 10), reader=LocalReader(ENCODER))
    assert rows[1].reader_stale is not None
    assert rows[1].reader_after is not None
    assert rows[1].reader_stale > rows[1].reader_after


def test_epsilon_is_measured_over_all_pairs() -> None:
    instances = shipped("chat-medium")[:5]
    found = epsilon(ENCODER, instances)
    pairs = sum(len(i.of_kind("old")) * len(i.of_kind("new")) for i in instances)
    assert len(found.values) == pairs
    assert 0 <= found.median <= found.p90 <= 2
    with pytest.raises(InvalidInputError, match="both an old and a new"):
        epsilon(ENCODER, [])
