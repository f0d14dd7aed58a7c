"""What every verdict cache must do; a store without one passes."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from gcmem.protocols import Store, VerdictCache
from gcmem.testing.store_harness import StoreHarness, chunk
from gcmem.types import OPTION, Conflict


class VerdictsSuite(StoreHarness):
    """Requirements on a verdict cache: it returns an oracle's own verdicts, and no other's."""

    @pytest.fixture
    def verdicts(self, store: Store) -> VerdictCache | None:
        """The cache of the store, if it has one; the store contains the chunks a, b, c and d."""
        self.put(store, *(replace(chunk(name), id=name) for name in "abcd"))
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

    def test_many_scores_are_kept_at_once(
        self, store: Store, verdicts: VerdictCache | None
    ) -> None:
        """A large candidate set has thousands of pairs."""
        if verdicts is None:
            return
        names = [f"chunk {n}" for n in range(60)]
        self.put(store, *(replace(chunk(name), id=name) for name in names))
        scores = {(a, b): n / 4000 for n, (a, b) in enumerate(permutations(names, 2))}
        verdicts.put("oracle@1", "漢字?", scores)
        assert verdicts.get("oracle@1", "漢字?", list(scores)) == pytest.approx(scores)

    def test_a_chunk_is_scored_against_the_options_of_a_question(
        self, verdicts: VerdictCache | None
    ) -> None:
        """In that case the second part of the key is the option's number."""
        if verdicts is None:
            return
        scores = {("a", f"{OPTION}{n}"): n / 10 for n in range(3)}
        verdicts.put("oracle@1", "Which?", scores)
        assert verdicts.get("oracle@1", "Which?", list(scores)) == pytest.approx(scores)

    def test_nothing_is_kept_about_a_chunk_that_was_forgotten(
        self, store: Store, verdicts: VerdictCache | None
    ) -> None:
        """Neither earlier verdicts nor those of a search that is still running are kept."""
        if verdicts is None:
            return
        pairs = [("a", "b"), ("b", "a"), ("a", f"{OPTION}0"), ("b", "c")]
        edges = [
            Conflict(older=older, newer=newer, score=0.75, oracle="oracle@1")
            for older, newer in (("a", "b"), ("b", "a"), ("b", "c"))
        ]
        for _ in range(2):
            verdicts.put("oracle@1", "Where?", dict.fromkeys(pairs, 0.75))
            verdicts.link(edges)
            store.log.delete(["a"])
        assert verdicts.get("oracle@1", "Where?", pairs) == {("b", "c"): 0.75}
        assert verdicts.witnesses("oracle@1", ["a", "b"]) == {"b": ["c"]}

    def test_edges_lead_from_old_to_newer(self, verdicts: VerdictCache | None) -> None:
        """Each oracle has its own edges, in a fixed order, without repeats."""
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

    def test_each_oracle_has_its_own_cursor(self, verdicts: VerdictCache | None) -> None:
        """The cursor starts at 0 and keeps the last value."""
        if verdicts is None:
            return
        assert verdicts.linked_up_to("oracle@1") == 0
        verdicts.set_linked_up_to("oracle@1", 7)
        verdicts.set_linked_up_to("oracle@1", 9)
        assert verdicts.linked_up_to("oracle@1") == 9
        assert verdicts.linked_up_to("oracle@2") == 0
