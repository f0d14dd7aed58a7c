from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcmem import Candidate, CandidateSet, Chunk, Scope
from gcmem.judge import GoldOracle, JointOracle
from gcmem.judge.local.timeline import posterior
from gcmem.resolve import temporal_dominance
from gcmem.store import SQLiteScores

START = datetime(2026, 1, 1, tzinfo=UTC)
OPTIONS = ("meat", "plants")


class Script:
    """Stances by the first word of a text: "m" speaks for meat, "p" for plants, else for none."""

    id = "script@1"

    def __init__(self) -> None:
        self.read: list[str] = []

    def stances(
        self, question: str, options: Sequence[str], texts: Sequence[str]
    ) -> list[tuple[float, ...]]:
        self.read += texts
        shares = {"m": (0.8, 0.1, 0.1), "p": (0.1, 0.8, 0.1)}
        return [shares.get(text.split()[0], (0.01, 0.01, 0.98)) for text in texts]


def memory(*texts: str, speakers: Sequence[str] | None = None, query: str = "?") -> CandidateSet:
    items = [
        Candidate(
            chunk=Chunk(
                id=str(n),
                text=f"{text} {n}",
                at=START + timedelta(days=n),
                seq=n,
                speaker=speakers[n] if speakers else "user",
            ),
            relevance=1.0,
            origin="mtm",
        )
        for n, text in enumerate(texts)
    ]
    return CandidateSet(query=query, options=OPTIONS, items=tuple(items))


def gone(candidates: CandidateSet, oracle: JointOracle | None = None) -> set[str]:
    oracle = oracle or JointOracle(Script(), GoldOracle([]))
    shadows = temporal_dominance(candidates, oracle.judge(candidates)).shadows
    return {shadow.candidate.chunk.id for shadow in shadows}


def test_the_old_state_goes_and_everything_else_stays() -> None:
    assert gone(memory("m", "m", "rain", "m", "m", "p", "rain", "p", "p")) == {"0", "1", "3", "4"}


def test_a_lone_stray_among_many_is_read_as_noise() -> None:
    assert gone(memory("m", "m", "m", "p", "m", "m", "m")) == set()


def test_without_a_change_nothing_goes() -> None:
    assert gone(memory("m", "m", "rain", "m")) == set()


def test_without_options_only_the_pairwise_oracle_is_asked() -> None:
    candidates = memory("m", "m", "p", "p")
    plain = CandidateSet(query="?", items=candidates.items)
    script = Script()
    assert JointOracle(script, GoldOracle([("0", "1")])).judge(plain)[0].older == "0"
    assert script.read == []


def test_what_the_pairwise_oracle_finds_is_kept() -> None:
    candidates = memory("rain", "rain")
    assert gone(candidates, JointOracle(Script(), GoldOracle([("0", "1")]))) == {"0"}


def test_a_question_about_one_speaker_leaves_the_others_alone() -> None:
    speakers = ["Ana"] * 4 + ["Ben"] + ["Ana"] * 4 + ["Ben"]
    said = ["m"] * 5 + ["p"] * 4 + ["m"]
    candidates = memory(*said, speakers=speakers, query="What does Ana eat?")
    assert gone(candidates) == {"0", "1", "2", "3"}


def test_what_an_assistant_says_moves_nothing_where_somebody_else_speaks() -> None:
    said = ["m", "m", "m", "p", "p", "p"]
    assert gone(memory(*said, speakers=["user"] * 3 + ["assistant"] * 3)) == set()
    assert gone(memory(*said, speakers=["assistant"] * 6)) == {"0", "1", "2"}


def test_two_users_never_meet_on_one_timeline() -> None:
    items = tuple(
        Candidate(
            chunk=Chunk(
                id=str(n), text=f"{text} {n}", at=START + timedelta(days=n), seq=n,
                scope=Scope(user_id=user),
            ),
            relevance=1.0,
            origin="mtm",
        )
        for n, (text, user) in enumerate([("m", "a"), ("m", "a"), ("p", "b"), ("p", "b")])
    )  # fmt: skip
    assert gone(CandidateSet(query="?", options=OPTIONS, items=items)) == set()


def test_stances_are_read_once() -> None:
    script, cache = Script(), SQLiteScores()
    oracle = JointOracle(script, GoldOracle([]), cache=cache)
    first = oracle.judge(memory("m", "m", "p", "p"))
    assert oracle.judge(memory("m", "m", "p", "p")) == first
    assert len(script.read) == 4
    cache.close()


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=1, max_size=20))
def test_posteriors_are_distributions(rows: list[list[float]]) -> None:
    stances = np.array(rows)
    stances /= stances.sum(axis=1, keepdims=True)
    found = posterior(stances, np.linspace(0, 1, len(rows)), switch=0.2, doubt=0.05)
    assert found.shape == stances.shape
    assert found.sum(axis=1) == pytest.approx(np.ones(len(rows)))


def test_what_is_off_the_topic_changes_nothing() -> None:
    said = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]])
    with_noise = posterior(said, np.array([1.0, 0.0, 1.0]), switch=0.2, doubt=0.05)
    without = posterior(said[[0, 2]], np.ones(2), switch=0.2, doubt=0.05)
    assert with_noise[[0, 2]] == pytest.approx(without)


def test_a_verdict_carries_the_id_of_the_whole_oracle() -> None:
    plain = memory("m", "m", "p", "p")
    oracle = JointOracle(Script(), GoldOracle([("0", "1")]))
    assert {conflict.oracle for conflict in oracle.judge(plain)} == {oracle.id}
    assert oracle.id != GoldOracle.id
