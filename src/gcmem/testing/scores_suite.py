"""What every score cache must do; a store without one passes."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from gcmem.protocols import ScoreCache, ScoreKey, Store
from gcmem.testing.store_harness import StoreHarness, chunk

WHERE = ScoreKey(scorer="model@1", question="Where?")


class ScoresSuite(StoreHarness):
    """Requirements on a score cache: scores belong to a model, a question and a kind."""

    @pytest.fixture
    def scores(self, store: Store) -> ScoreCache | None:
        """The cache of the store, if it has one; the store contains the chunks a, b, c and d."""
        self.put(store, *(replace(chunk(name), id=name) for name in "abcd"))
        return store.scores

    def test_scores_belong_to_a_model_a_question_and_a_kind(
        self, scores: ScoreCache | None
    ) -> None:
        """The question's case does not matter; a newer score replaces an older one."""
        if scores is None:
            return
        pair = ("a", "b")
        assert scores.get(WHERE, [pair]) == {}
        scores.put(WHERE, {pair: 0.75, ("b", "a"): 0.1})
        assert scores.get(replace(WHERE, question="where?"), [pair]) == {pair: 0.75}
        assert scores.get(replace(WHERE, scorer="model@2"), [pair]) == {}
        assert scores.get(replace(WHERE, question="Why?"), [pair]) == {}
        assert scores.get(replace(WHERE, kind="glance"), [pair]) == {}
        scores.put(WHERE, {pair: 0.25, ("c", "d"): float("nan")})
        assert scores.get(WHERE, [pair, ("c", "d")]) == {pair: 0.25}
        assert scores.get(WHERE, []) == {}

    def test_many_scores_are_kept_at_once(self, store: Store, scores: ScoreCache | None) -> None:
        """A large candidate set has thousands of pairs."""
        if scores is None:
            return
        names = [f"chunk {n}" for n in range(60)]
        self.put(store, *(replace(chunk(name), id=name) for name in names))
        many = {(a, b): n / 4000 for n, (a, b) in enumerate(permutations(names, 2))}
        key = ScoreKey(scorer="model@1", question="漢字?")
        scores.put(key, many)
        assert scores.get(key, list(many)) == pytest.approx(many)

    def test_a_chunk_is_scored_against_the_options_of_a_question(
        self, scores: ScoreCache | None
    ) -> None:
        """The second part of a stance is the option's number, even if a chunk has that id."""
        if scores is None:
            return
        key = replace(WHERE, kind="stance")
        stances = {("a", str(n)): n / 10 for n in range(3)}
        scores.put(key, stances)
        scores.forget(["0"])
        assert scores.get(key, list(stances)) == pytest.approx(stances)

    def test_no_score_is_kept_of_a_chunk_that_was_forgotten(
        self, store: Store, scores: ScoreCache | None
    ) -> None:
        """Neither an earlier score nor that of a search that is still running."""
        if scores is None:
            return
        pairs = [("a", "b"), ("b", "a"), ("b", "c")]
        stance = replace(WHERE, kind="stance")
        for _ in range(2):
            scores.put(WHERE, dict.fromkeys(pairs, 0.75))
            scores.put(stance, {("a", "0"): 0.5})
            store.delete(["a"])
        assert scores.get(WHERE, pairs) == {("b", "c"): 0.75}
        assert scores.get(stance, [("a", "0")]) == {}
