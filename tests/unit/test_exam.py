from __future__ import annotations

from pathlib import Path

from training.kappa.data import load_contrasts, load_families

from gcmem.qualify import load_pairs, load_sets

EXAM = Path(__file__).parents[2] / "training" / "exam"


def test_the_exam_can_be_read_and_no_pair_of_it_is_in_the_corpus() -> None:
    pairs = load_pairs(EXAM / "pairs.jsonl")
    assert len(pairs) == 576
    assert len(load_sets(EXAM / "instances.jsonl")) == 38
    known = {(p.older, p.newer) for family in load_families() for p in family.pairs}
    known |= {(p.older, p.newer) for part in ("train", "dev", "test") for p in load_contrasts(part)}
    assert not [pair for pair in pairs if (pair.older, pair.newer) in known]
