"""What every ledger must do; a store without one passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gcmem.protocols import Ledger, Store
from gcmem.testing.store_harness import StoreHarness, chunk
from gcmem.types import Conflict


def conflict(older: str, newer: str, *, oracle: str = "oracle@1") -> Conflict:
    """Returns a conflict between two chunks."""
    return Conflict(older=older, newer=newer, score=0.75, oracle=oracle)


class LedgerSuite(StoreHarness):
    """Requirements on a ledger: it returns an oracle's own conflicts, and no other's."""

    @pytest.fixture
    def ledger(self, store: Store) -> Ledger | None:
        """The ledger of the store, if it has one; the store contains the chunks a, b, c and d."""
        self.put(store, *(replace(chunk(name), id=name) for name in "abcd"))
        return store.ledger

    def test_conflicts_are_found_by_their_older_chunk(self, ledger: Ledger | None) -> None:
        """Each oracle has its own conflicts, in a fixed order, without repeats."""
        if ledger is None:
            return
        a_b, a_c, b_c = conflict("a", "b"), conflict("a", "c"), conflict("b", "c")
        other = conflict("a", "d", oracle="oracle@2")
        ledger.record([])
        ledger.record([a_c, a_b, b_c, other])
        ledger.record([a_c, a_c])
        assert ledger.conflicts("oracle@1", ["a", "b", "c"]) == {"a": [a_b, a_c], "b": [b_c]}
        assert ledger.conflicts("oracle@2", ["a"]) == {"a": [other]}
        assert ledger.conflicts("oracle@1", []) == {}

    def test_no_conflict_is_kept_of_a_chunk_that_was_forgotten(
        self, store: Store, ledger: Ledger | None
    ) -> None:
        """Neither an earlier conflict nor that of a search that is still running."""
        if ledger is None:
            return
        for _ in range(2):
            ledger.record([conflict("a", "b"), conflict("b", "a"), conflict("b", "c")])
            store.delete(["a"])
        assert ledger.conflicts("oracle@1", ["a", "b"]) == {"b": [conflict("b", "c")]}

    def test_each_oracle_has_its_own_cursor(self, ledger: Ledger | None) -> None:
        """The cursor starts at 0 and keeps the last value."""
        if ledger is None:
            return
        assert ledger.judged_up_to("oracle@1") == 0
        ledger.set_judged_up_to("oracle@1", 7)
        ledger.set_judged_up_to("oracle@1", 9)
        assert ledger.judged_up_to("oracle@1") == 9
        assert ledger.judged_up_to("oracle@2") == 0
