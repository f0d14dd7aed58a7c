"""The laws of Φ_T where sources are not trusted alike."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gcmem import CandidateSet, Conflict, Resolution, temporal_dominance
from gcmem.resolve.by_trust import ByTrust
from tests.laws.test_dominance import Case, cases


@st.composite
def ranked_cases(draw: st.DrawFn, *, dated: bool = False) -> Case:
    """Candidate sets with conflicts, whose chunks have up to three trust levels."""
    candidates, conflicts = draw(cases(dated=dated))
    items = tuple(
        replace(item, chunk=replace(item.chunk, trust=draw(st.integers(0, 2))))
        for item in candidates
    )
    return replace(candidates, items=items), conflicts


def resolved(case: Case) -> Resolution:
    return temporal_dominance(*case, respect_trust=True)


@given(ranked_cases())
def test_kept_and_shadows_partition_the_candidates(case: Case) -> None:
    resolution = resolved(case)
    shadowed = {shadow.candidate for shadow in resolution.shadows}
    assert {*resolution.kept, *shadowed} == set(case[0].items)
    assert len(resolution.kept) + len(resolution.shadows) == len(case[0])


@given(ranked_cases(), st.randoms(use_true_random=False))
def test_the_order_of_input_does_not_matter(case: Case, rng: random.Random) -> None:
    candidates, conflicts = case
    items, flipped = list(candidates.items), [
        replace(c, older=c.newer, newer=c.older) for c in conflicts
    ]  # fmt: skip
    rng.shuffle(items)
    rng.shuffle(flipped)
    shuffled = resolved((replace(candidates, items=tuple(items)), tuple(flipped)))
    original = resolved(case)
    assert set(shuffled.kept) == set(original.kept)
    assert set(shuffled.shadows) == set(original.shadows)
    assert shuffled.undecided == original.undecided
    assert shuffled.outranked == original.outranked


@given(ranked_cases())
def test_it_is_idempotent(case: Case) -> None:
    once = resolved(case)
    left = {item.chunk.id for item in once.kept}
    remaining = tuple(c for c in case[1] if c.older in left and c.newer in left)
    twice = resolved((replace(case[0], items=once.kept), remaining))
    assert twice.kept == once.kept
    assert twice.shadows == ()


@given(ranked_cases())
def test_without_conflicts_it_is_the_identity(case: Case) -> None:
    assert resolved((case[0], ())) == Resolution(kept=case[0].items, shadows=(), undecided=())


@given(ranked_cases())
def test_it_never_empties_a_set(case: Case) -> None:
    assert bool(resolved(case).kept) == bool(len(case[0]))


@given(ranked_cases(dated=True))
def test_the_newest_of_the_most_trusted_survives(case: Case) -> None:
    if len(case[0]):
        best = max(case[0], key=lambda i: (i.chunk.trust, i.chunk.at, i.chunk.seq))
        assert best in resolved(case).kept


@given(ranked_cases())
def test_no_chunk_is_shadowed_by_one_that_is_trusted_less(case: Case) -> None:
    for shadow in resolved(case).shadows:
        assert shadow.candidate.chunk.precedes(shadow.witness.chunk)
        assert shadow.witness.chunk.trust >= shadow.candidate.chunk.trust


@given(ranked_cases())
def test_a_conflict_is_used_or_reported_and_never_lost(case: Case) -> None:
    candidates, conflicts = case
    chunks = {item.chunk.id: item.chunk for item in candidates}
    resolution = resolved(case)
    reported = {frozenset((c.older, c.newer)) for c in resolution.outranked + resolution.undecided}
    shadowed = {shadow.candidate.chunk.id for shadow in resolution.shadows}
    for conflict in conflicts:
        a, b = chunks[conflict.older], chunks[conflict.newer]
        if a.scope.user_id == b.scope.user_id:
            older = a if a.precedes(b) else b
            assert frozenset((a.id, b.id)) in reported or older.id in shadowed


@given(ranked_cases())
def test_what_is_outranked_names_a_newer_chunk_that_is_trusted_less(case: Case) -> None:
    chunks = {item.chunk.id: item.chunk for item in case[0]}
    for conflict in resolved(case).outranked:
        older, newer = chunks[conflict.older], chunks[conflict.newer]
        assert older.precedes(newer)
        assert newer.trust < older.trust


@given(cases(), st.integers(0, 5))
def test_with_all_levels_equal_nothing_changes(case: Case, level: int) -> None:
    candidates, conflicts = case
    items = tuple(replace(i, chunk=replace(i.chunk, trust=level)) for i in candidates)
    same = replace(candidates, items=items)
    assert resolved((same, conflicts)) == temporal_dominance(same, conflicts)


@given(ranked_cases())
def test_unless_asked_trust_changes_nothing(case: Case) -> None:
    candidates, conflicts = case
    items = tuple(replace(i, chunk=replace(i.chunk, trust=1)) for i in candidates)
    plain = temporal_dominance(replace(candidates, items=items), conflicts)
    assert [i.chunk.id for i in temporal_dominance(*case).kept] == [i.chunk.id for i in plain.kept]
    assert temporal_dominance(*case).outranked == ()


class Fickle:
    """An oracle whose every verdict depends on everything that it sees."""

    id = "fickle@1"

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        seen = " ".join(sorted(item.chunk.id for item in candidates))
        return tuple(
            Conflict(older=a, newer=b, score=0.9, oracle=self.id)
            for a, b in combinations(sorted(item.chunk.id for item in candidates), 2)
            if hashlib.sha256(f"{seen}: {a} {b}".encode()).digest()[0] % 2
        )


@given(ranked_cases(), st.integers(0, 2))
def test_what_is_trusted_less_changes_nothing_for_what_is_trusted_more(
    case: Case, level: int
) -> None:
    oracle = ByTrust(Fickle())
    candidates = case[0]
    above = replace(candidates, items=tuple(i for i in candidates if i.chunk.trust >= level))
    whole = resolved((candidates, oracle.judge(candidates)))
    alone = resolved((above, oracle.judge(above)))
    assert tuple(item for item in whole.kept if item.chunk.trust >= level) == alone.kept


@given(cases())
def test_with_one_level_the_oracle_is_asked_as_it_is(case: Case) -> None:
    assert ByTrust(Fickle()).judge(case[0]) == Fickle().judge(case[0])
