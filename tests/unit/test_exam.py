from __future__ import annotations

from pathlib import Path

import pytest
from training.kappa.data import load_contrasts, load_families

from gcmem.judge.labelled import load_pairs, load_sets

EXAM = Path(__file__).parents[2] / "training" / "exam"


@pytest.mark.parametrize(
    ("folder", "pairs", "memories"), [(EXAM, 576, 38), (EXAM / "second", 320, 30)]
)
def test_an_exam_can_be_read_and_no_pair_of_it_is_in_the_corpus(
    folder: Path, pairs: int, memories: int
) -> None:
    asked = load_pairs(folder / "pairs.jsonl")
    assert len(asked) == pairs
    assert len(load_sets(folder / "instances.jsonl")) == memories
    known = {(p.older, p.newer) for family in load_families() for p in family.pairs}
    known |= {(p.older, p.newer) for part in ("train", "dev", "test") for p in load_contrasts(part)}
    assert not [pair for pair in asked if (pair.older, pair.newer) in known]
