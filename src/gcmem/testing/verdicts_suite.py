"""What every verdict cache must do; a store without one passes."""

from __future__ import annotations

import pytest

from gcmem.protocols import Store, VerdictCache
from gcmem.testing.store_harness import StoreHarness
from gcmem.types import Conflict


class VerdictsSuite(StoreHarness):
    """The laws of a verdict cache: what an oracle said can be asked again, and no other's."""

    @pytest.fixture
    def verdicts(self, store: Store) -> VerdictCache | None:
        """The cache of the store, if it has one."""
        return store.verdicts

    def test_scores_belong_to_an_oracle_and_a_question(self, verdicts: VerdictCache | None) -> None:
        """The question's case does not matter; a newer score replaces an older one."""
        if verdicts is None:
            return
        pair = ("a", "b")
        assert verdicts.get("oracle@1", "Where?", [pair]) == {}
        verdicts.put("oracle@1", "Where?", {pair: 0.75, ("b", "a"): 0.1})
        assert verdicts.get("oracle@1", "where?", [pair]) == {pair: 0.75}
        assert verdicts.get("oracle@2", "Where?", [pair]) == {}
        assert verdicts.get("oracle@1", "Why?", [pair]) == {}
        verdicts.put("oracle@1", "Where?", {pair: 0.25, ("c", "d"): float("nan")})
        assert verdicts.get("oracle@1", "Where?", [pair, ("c", "d")]) == {pair: 0.25}
        assert verdicts.get("oracle@1", "Where?", []) == {}

    def test_many_scores_are_kept_at_once(self, verdicts: VerdictCache | None) -> None:
        """A large candidate set has thousands of pairs."""
        if verdicts is None:
            return
        scores = {(f"old {n}", f"new {n}"): n / 3000 for n in range(3000)}
        verdicts.put("oracle@1", "漢字?", scores)
        assert verdicts.get("oracle@1", "漢字?", list(scores)) == pytest.approx(scores)

    def test_edges_lead_from_old_to_newer(self, verdicts: VerdictCache | None) -> None:
        """Each oracle has its own, in a fixed order, each once."""
        if verdicts is None:
            return
        edges = [
            Conflict(older=older, newer=newer, score=0.75, oracle=oracle)
            for older, newer, oracle in (
                ("a", "c", "oracle@1"),
                ("a", "b", "oracle@1"),
                ("b", "c", "oracle@1"),
                ("a", "d", "oracle@2"),
            )
        ]
        verdicts.link([])
        verdicts.link(edges)
        verdicts.link([*edges[:1], edges[0]])
        assert verdicts.witnesses("oracle@1", ["a", "b", "c"]) == {"a": ["b", "c"], "b": ["c"]}
        assert verdicts.witnesses("oracle@2", ["a"]) == {"a": ["d"]}
        assert verdicts.witnesses("oracle@1", []) == {}

    def test_an_oracle_knows_how_far_it_has_come(self, verdicts: VerdictCache | None) -> None:
        """Each oracle has a cursor of its own."""
        if verdicts is None:
            return
        assert verdicts.linked_up_to("oracle@1") == 0
        verdicts.set_linked_up_to("oracle@1", 7)
        verdicts.set_linked_up_to("oracle@1", 9)
        assert verdicts.linked_up_to("oracle@1") == 9
        assert verdicts.linked_up_to("oracle@2") == 0
