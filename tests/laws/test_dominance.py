"""The laws of Φ_T."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gcmem import Candidate, CandidateSet, Chunk, Conflict, Resolution, Scope, temporal_dominance
from gcmem.resolve.skew import skew_between
from tests.conftest import day

Case = tuple[CandidateSet, tuple[Conflict, ...]]
MAX_SKEW = timedelta(days=1)


def dominance(candidates: CandidateSet, conflicts: Iterable[Conflict]) -> Resolution:
    return temporal_dominance(candidates, conflicts, max_skew=MAX_SKEW)


@st.composite
def cases(draw: st.DrawFn, *, dated: bool = False) -> Case:
    """Candidate sets with any conflicts: ties, missing times, several users, skewed clocks."""
    times = st.integers(0, 4) if dated else st.none() | st.integers(0, 4)
    seqs = st.just(None) if draw(st.booleans()) and not dated else st.integers(1, 50)
    size = draw(st.integers(0, 8))
    items = []
    for n in range(size):
        at = draw(times)
        seq = n + 1 if dated else draw(seqs)
        chunk = Chunk(
            id=f"c{n}",
            text=f"t{n}",
            at=None if at is None else day(at),
            recorded_at=draw(st.none() | st.integers(0, 4).map(day)),
            seq=seq,
            scope=Scope(user_id=draw(st.sampled_from([None, "ana"]))),
        )
        items.append(Candidate(chunk=chunk, relevance=draw(st.floats(0, 1)), origin="mtm"))
    pairs = list(combinations([item.chunk.id for item in items], 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    conflicts = tuple(
        Conflict(older=a, newer=b, score=draw(st.floats(0, 1)), oracle="test") for a, b in chosen
    )
    return CandidateSet(query="q", items=tuple(items)), conflicts


def kept_ids(candidates: CandidateSet, conflicts: tuple[Conflict, ...]) -> set[str]:
    return {item.chunk.id for item in dominance(candidates, conflicts).kept}


@given(cases())
def test_kept_and_shadows_partition_the_candidates(case: Case) -> None:
    resolution = dominance(*case)
    kept = [item.chunk.id for item in resolution.kept]
    shadowed = [shadow.candidate.chunk.id for shadow in resolution.shadows]
    assert sorted(kept + shadowed) == sorted(item.chunk.id for item in case[0])


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_input_does_not_matter(case: Case, rng: random.Random) -> None:
    candidates, conflicts = case
    items = list(candidates.items)
    rng.shuffle(items)
    flipped = [
        Conflict(older=c.newer, newer=c.older, score=c.score, oracle=c.oracle) for c in conflicts
    ]
    rng.shuffle(flipped)
    shuffled = dominance(CandidateSet(query="q", items=tuple(items)), flipped)
    original = dominance(candidates, conflicts)
    assert set(shuffled.kept) == set(original.kept)
    assert set(shuffled.shadows) == set(original.shadows)
    assert shuffled.undecided == original.undecided


@given(cases())
def test_it_is_idempotent(case: Case) -> None:
    candidates, conflicts = case
    once = dominance(candidates, conflicts)
    left = {item.chunk.id for item in once.kept}
    remaining = [c for c in conflicts if c.older in left and c.newer in left]
    twice = dominance(CandidateSet(query="q", items=once.kept), remaining)
    assert twice.kept == once.kept
    assert twice.shadows == ()


@given(cases())
def test_without_conflicts_it_is_the_identity(case: Case) -> None:
    resolution = dominance(case[0], ())
    assert resolution.kept == case[0].items
    assert resolution.shadows == ()
    assert resolution.undecided == ()


@given(cases())
def test_it_never_empties_a_set(case: Case) -> None:
    candidates, conflicts = case
    assert bool(kept_ids(candidates, conflicts)) == bool(len(candidates))


@given(cases(dated=True))
def test_the_newest_always_survives(case: Case) -> None:
    candidates, conflicts = case
    if len(candidates):
        newest = max(candidates, key=lambda item: (item.chunk.at, item.chunk.seq))
        assert newest.chunk.id in kept_ids(candidates, conflicts)


@given(cases())
def test_every_shadow_names_a_newer_chunk_that_contradicts_it(case: Case) -> None:
    candidates, conflicts = case
    judged = {frozenset((c.older, c.newer)) for c in conflicts}
    for shadow in dominance(candidates, conflicts).shadows:
        assert shadow.candidate.chunk.precedes(shadow.witness.chunk)
        assert shadow.conflict.older == shadow.candidate.chunk.id
        assert shadow.conflict.newer == shadow.witness.chunk.id
        assert frozenset((shadow.conflict.older, shadow.conflict.newer)) in judged


@given(cases())
def test_what_can_not_be_ordered_stays_and_is_reported(case: Case) -> None:
    candidates, conflicts = case
    chunks = {item.chunk.id: item.chunk for item in candidates}
    unordered = {
        tuple(sorted((c.older, c.newer)))
        for c in conflicts
        if chunks[c.older].scope == chunks[c.newer].scope
        and chunks[c.older].precedes(chunks[c.newer]) is None
    }
    skewed = {
        tuple(sorted((c.older, c.newer)))
        for c in conflicts
        if chunks[c.older].scope == chunks[c.newer].scope
        and skew_between(chunks[c.older], chunks[c.newer], max_skew=MAX_SKEW)
    }
    resolution = dominance(candidates, conflicts)
    assert {(c.older, c.newer) for c in resolution.undecided} == unordered | skewed
    assert {(s.conflict.older, s.conflict.newer) for s in resolution.skewed} == skewed


@given(cases())
def test_without_a_bound_every_clock_is_trusted(case: Case) -> None:
    assert temporal_dominance(*case).skewed == ()


@given(cases())
def test_a_bound_on_skew_never_removes_more(case: Case) -> None:
    trusting = {item.chunk.id for item in temporal_dominance(*case).kept}
    assert trusting <= kept_ids(*case)


@given(st.integers(2, 10), st.randoms(use_true_random=False))
def test_a_chain_collapses_to_its_last_link(length: int, rng: random.Random) -> None:
    chunks = [Chunk(id=f"c{n}", text=f"state {n}", at=day(n), seq=n + 1) for n in range(length)]
    items = [Candidate(chunk=chunk, relevance=0.5, origin="mtm") for chunk in chunks]
    rng.shuffle(items)
    links = [
        Conflict(older=f"c{n}", newer=f"c{n + 1}", score=0.9, oracle="test")
        for n in range(length - 1)
    ]
    assert kept_ids(CandidateSet(query="q", items=tuple(items)), tuple(links)) == {f"c{length - 1}"}


@given(cases())
def test_two_users_never_shadow_each_other(case: Case) -> None:
    for shadow in dominance(*case).shadows:
        assert shadow.candidate.chunk.scope.user_id == shadow.witness.chunk.scope.user_id
