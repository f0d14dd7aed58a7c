"""What every ledger and every table of claims must do; a store without them passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcmem.protocols import ClaimTable, FoundClaim, Ledger, Pin, Store
from gcmem.testing.store_harness import EVERYTHING, START, StoreHarness, chunk
from gcmem.types import ChunkFilter, Scope, Verdict

JUDGE = "judge@1"


def verdict(older: str, newer: str, **fields: Any) -> Verdict:
    """Returns a verdict on two claims."""
    known: dict[str, Any] = {
        "score": 0.75,
        "oracle": JUDGE,
        "older_span": (0, 1),
        "newer_span": (0, 1),
        "recorded_at": START,
    }
    return Verdict(older=older, newer=newer, **{**known, **fields})


class LedgerSuite(StoreHarness):
    """Requirements on a ledger: what is said last counts, once, and never of forgotten chunks."""

    @pytest.fixture
    def ledger(self, store: Store) -> Ledger:
        """The ledger of the store, which contains the chunks a, b, c and d."""
        self.put(store, *(replace(chunk(name), id=name) for name in "abcd"))
        if store.ledger is None:
            pytest.skip("this store has no ledger")
        return store.ledger

    def test_verdicts_are_found_by_their_older_chunk(self, ledger: Ledger) -> None:
        """In the order in which they were recorded."""
        ledger.record([])
        ledger.record([verdict("a", "c"), verdict("a", "b"), verdict("b", "c")])
        assert ledger.verdicts(["b", "a"]) == [
            verdict("a", "c"),
            verdict("a", "b"),
            verdict("b", "c"),
        ]
        assert ledger.verdicts(["c"]) == []
        assert ledger.verdicts([]) == []

    def test_everything_about_a_verdict_is_kept(self, ledger: Ledger) -> None:
        """The places in the texts, who judged, why and when."""
        said = verdict(
            "a", "b", older_span=(3, 9), newer_span=(12, 40), by="person", oracle="Ana", score=1.0,
            reason="she moved, é ✓", recorded_at=START.replace(microsecond=123456),
        )  # fmt: skip
        ledger.record([said])
        assert ledger.verdicts(["a"]) == [said]

    def test_the_last_verdict_of_a_judge_counts(self, ledger: Ledger) -> None:
        """Per pair of claims; other judges and other claims of the same chunks stay."""
        other_judge, other_claim = (
            verdict("a", "b", oracle="x@1"),
            verdict("a", "b", older_span=(2, 3)),
        )
        ledger.record([verdict("a", "b"), other_judge, other_claim])
        ledger.record([verdict("a", "b", score=0.1)])
        assert ledger.verdicts(["a"]) == [other_judge, other_claim, verdict("a", "b", score=0.1)]

    def test_a_question_has_verdicts_of_its_own(self, ledger: Ledger) -> None:
        """They count for that question alone, beside those without a question."""
        asked = verdict("a", "b", question="Where does Ana live?", score=0.9)
        ledger.record([verdict("a", "b"), asked])
        assert ledger.verdicts(["a"]) == [verdict("a", "b")]
        assert ledger.verdicts(["a"], questions=["", "Where does Ana live?"]) == [
            verdict("a", "b"),
            asked,
        ]
        assert ledger.verdicts(["a"], questions=["Who?"]) == []

    def test_a_chunk_is_judged_once(self, ledger: Ledger, other: Store) -> None:
        """Marks and verdicts are written together, and a second time nothing is."""
        assert other.ledger is not None
        assert ledger.pending(JUDGE) == 4
        assert ledger.record_judged(JUDGE, {2: [verdict("a", "b")], 4: []}) == 2
        assert other.ledger.record_judged(JUDGE, {2: [verdict("a", "b", score=0.2)], 3: []}) == 1
        assert ledger.verdicts(["a"]) == [verdict("a", "b")]
        assert ledger.judged(JUDGE, [1, 2, 3, 4]) == {2, 3, 4}
        assert ledger.pending(JUDGE) == 1
        assert ledger.judged_up_to(JUDGE) == 0

    def test_each_judge_has_read_up_to_somewhere(self, ledger: Ledger) -> None:
        """The number never goes back, and what is below it counts as judged."""
        ledger.record_judged(JUDGE, {1: [], 3: []}, up_to=1)
        ledger.record_judged(JUDGE, {2: []}, up_to=3)
        ledger.record_judged(JUDGE, {}, up_to=2)
        assert ledger.judged_up_to(JUDGE) == 3
        assert ledger.judged(JUDGE, [1, 2, 3, 4]) == {1, 2, 3}
        assert ledger.record_judged(JUDGE, {1: [verdict("b", "a")]}) == 0
        assert (ledger.pending(JUDGE), ledger.pending("judge@2")) == (1, 4)
        ledger.record_judged("judge@2", {}, up_to=1)
        assert ledger.judges() == ["judge@2", JUDGE]

    def test_one_holder_at_a_time_judges_ahead(self, ledger: Ledger, other: Store) -> None:
        """The right can be renewed, given back, and is lost after its time."""
        assert other.ledger is not None
        assert ledger.lease("one", seconds=60)
        assert not other.ledger.lease("two", seconds=60)
        assert ledger.lease("one", seconds=60)
        other.ledger.release("two")
        assert not other.ledger.lease("two", seconds=60)
        ledger.release("one")
        assert other.ledger.lease("two", seconds=0)
        assert ledger.lease("one", seconds=60)

    def test_pins_can_be_taken_back(self, ledger: Ledger) -> None:
        """The last word counts."""
        pin = Pin(chunk_id="a", is_pinned=True, by="Ana", recorded_at=START)
        ledger.pin(pin)
        ledger.pin(replace(pin, chunk_id="b"))
        ledger.pin(replace(pin, chunk_id="b", is_pinned=False))
        ledger.pin(replace(pin, chunk_id="nowhere"))
        assert ledger.pins(["a", "b", "c", "nowhere"]) == {"a": pin}

    def test_nothing_is_kept_of_a_chunk_that_was_forgotten(
        self, store: Store, ledger: Ledger
    ) -> None:
        """Neither what was known of it, nor what is found while it is being judged."""
        pin = Pin(chunk_id="a", is_pinned=True, by="Ana", recorded_at=START)
        for _ in range(2):
            ledger.record([verdict("a", "b"), verdict("b", "a"), verdict("b", "c")])
            ledger.pin(pin)
            store.delete(["a"])
        assert ledger.verdicts(["a", "b"]) == [verdict("b", "c")]
        assert ledger.pins(["a"]) == {}


class ClaimsSuite(StoreHarness):
    """Requirements on a table of claims."""

    @pytest.fixture
    def claims(self, store: Store) -> ClaimTable:
        """The claims of a store that contains a to d, one a day, of two users in turn."""
        texts = ("a in Porto. b.", "b in Lyon", "c", "d")
        made = [
            replace(chunk(text, day=day, user=("ana", "bob")[day % 2]), id=text[0])
            for day, text in enumerate(texts)
        ]
        self.put(store, *made)
        if store.claims is None:
            pytest.skip("this store has no claims")
        return store.claims

    def test_claims_are_found_by_their_chunk(self, claims: ClaimTable) -> None:
        """A chunk that was read and has none is told from one that was not read."""
        one, two = FoundClaim((0, 11), self._vector(1)), FoundClaim((12, 14), self._vector(2))
        claims.put({1: [one, two], 3: []}, detector="d@1")
        found = claims.get([1, 2, 3], detector="d@1")
        assert {seq: [claim.span for claim in each] for seq, each in found.items()} == {
            1: [(0, 11), (12, 14)],
            3: [],
        }
        assert np.allclose(found[1][1].vector, two.vector, atol=1e-3)
        assert claims.get([1], detector="d@2") == {}
        assert claims.get([], detector="d@1") == {}

    def test_a_better_detector_replaces_claims(self, claims: ClaimTable) -> None:
        """Those of the same chunks, and no others."""
        claims.put({1: [FoundClaim((0, 11), self._vector(1))], 2: []}, detector="d@1")
        claims.put({1: [FoundClaim((0, 4), self._vector(1))]}, detector="d@2")
        assert [claim.span for claim in claims.get([1], detector="d@2")[1]] == [(0, 4)]
        assert claims.get([1, 2], detector="d@1") == {2: []}

    def test_claims_are_listed_newest_first(self, claims: ClaimTable) -> None:
        """Of the chunks that match a filter, and from a place on."""
        vector = self._vector(1)
        claims.put({1: [FoundClaim((0, 11), vector), FoundClaim((12, 14), vector)]}, detector="d@1")
        claims.put(
            {3: [FoundClaim((0, 1), vector)], 2: [FoundClaim((0, 9), vector)]}, detector="d@1"
        )
        claims.put({4: []}, detector="d@1")
        listed = list(claims.scan(EVERYTHING, detector="d@1", after=None))
        assert [claim.text for claim in listed] == ["c", "b in Lyon", "b.", "a in Porto."]
        mine = ChunkFilter(scope=Scope(user_id="ana"))
        after = next(claims.scan(mine, detector="d@1", after=None))
        assert [c.text for c in claims.scan(mine, detector="d@1", after=after)] == [
            "b.",
            "a in Porto.",
        ]
        assert list(claims.scan(EVERYTHING, detector="d@2", after=None)) == []

    def test_claims_of_forgotten_chunks_are_gone(self, store: Store, claims: ClaimTable) -> None:
        """Also those that are found while the chunk is being forgotten."""
        for _ in range(2):
            claims.put({1: [FoundClaim((0, 11), self._vector(1))], 2: []}, detector="d@1")
            store.delete(["a"])
        assert claims.get([1, 2], detector="d@1") == {2: []}

    def _vector(self, number: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        vector = np.zeros(self.encoder.dimensions, dtype=np.float32)
        vector[number] = 1.0
        return vector
