from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcmem import Candidate, CandidateSet, Chunk, Scope
from gcmem.calls import one_call
from gcmem.defaults import default_classifier, default_encoder, default_oracle
from gcmem.errors import InvalidInputError
from gcmem.judge import Focus, GoldOracle, JointOracle, LocalClassifier, PairwiseOracle, TopicGate
from gcmem.judge.local.cross_encoder import CrossEncoder
from gcmem.judge.recipe import shipped_recipe
from gcmem.protocols import ConflictOracle, ScoreKey
from gcmem.store import SQLiteScores
from gcmem.testing import HashEncoder
from tests.conftest import day

GATE = shipped_recipe().gate


def candidates(*chunks: Chunk) -> CandidateSet:
    items = tuple(Candidate(chunk=chunk, relevance=0.5, origin="mtm") for chunk in chunks)
    return CandidateSet(query="the question", items=items)


class Recording:
    id = "recording@1"

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, str]]] = []

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.asked += [(question, pair) for pair in pairs]
        return [0.9 if "new" in newer else 0.1 for _, newer in pairs]


def test_a_pairwise_oracle_asks_older_first_and_only_pairs_that_can_conflict() -> None:
    classifier = Recording()
    found = PairwiseOracle(classifier).judge(
        candidates(
            Chunk(id="n", text="new", at=day(2), seq=2, scope=Scope(user_id="ana")),
            Chunk(id="o", text="old", at=day(1), seq=1, scope=Scope(user_id="ana")),
            Chunk(id="same", text="old", at=day(1), seq=3, scope=Scope(user_id="ana")),
            Chunk(id="b", text="new of bob", at=day(3), seq=4, scope=Scope(user_id="bob")),
        )
    )
    assert classifier.asked == [("the question", ("old", "new"))] * 2
    assert {(c.older, c.newer, c.score, c.oracle) for c in found} == {
        ("o", "n", 0.9, "recording@1"),
        ("same", "n", 0.9, "recording@1"),
    }
    with pytest.raises(InvalidInputError):
        PairwiseOracle(classifier, threshold=2)


@pytest.mark.parametrize(
    ("older", "newer", "removed"),
    [
        ("user", "user", True),
        ("user", "assistant", False),
        ("assistant", "assistant", True),
        ("assistant", "user", True),
        ("ana", "assistant", False),
        ("ana", "ben", False),
        ("ana", "user", True),
    ],
)
def test_neither_an_assistant_nor_a_stranger_unseats_what_somebody_said(
    older: str, newer: str, removed: bool
) -> None:
    chunks = (
        Chunk(id="o", text="old", at=day(1), speaker=older),
        Chunk(id="n", text="new", at=day(2), speaker=newer),
    )
    assert bool(PairwiseOracle(Recording()).judge(candidates(*chunks))) is removed


def test_what_cannot_be_ordered_is_asked_about_if_either_could_be_the_witness() -> None:
    for ids in ("ab", "ba"):
        chunks = (
            Chunk(id=ids[0], text="new told", at=None, speaker="user"),
            Chunk(id=ids[1], text="new said", at=None, speaker="assistant"),
        )
        assert len(PairwiseOracle(Recording()).judge(candidates(*chunks))) == 1


def test_one_witness_is_enough_and_the_newest_is_asked_first() -> None:
    classifier = Recording()
    chunks = [Chunk(id="old", text="old", at=day(0), seq=1)]
    chunks += [Chunk(id=f"n{n}", text=f"new {n}", at=day(n), seq=n + 1) for n in range(1, 9)]
    PairwiseOracle(classifier).judge(candidates(*chunks))
    held_against_old = [newer for _, (older, newer) in classifier.asked if older == "old"]
    assert held_against_old == ["new 8"]


class Glancing(Recording):
    """Finds at a glance that the number 3 is the likeliest, and judges so too."""

    def __init__(self) -> None:
        super().__init__()
        self.glanced: list[tuple[str, str]] = []

    def glance(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.glanced += pairs
        return [0.7 if "3" in newer else 0.4 for _, newer in pairs]

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        super().score(question, pairs)
        return [0.9 if "3" in newer else 0.1 for _, newer in pairs]


def test_what_a_glance_finds_likeliest_is_read_first_and_glances_are_kept() -> None:
    scores = SQLiteScores()
    chunks = [Chunk(id=f"n{n}", text=f"word {n}", at=day(n), seq=n + 1) for n in range(5)]
    first, again = Glancing(), Glancing()
    found = PairwiseOracle(first, cache=scores).judge(candidates(*chunks))
    assert {(c.older, c.newer) for c in found} == {("n0", "n3"), ("n1", "n3"), ("n2", "n3")}
    assert [pair for _, pair in first.asked] == [
        ("word 0", "word 3"),
        ("word 1", "word 3"),
        ("word 2", "word 3"),
        ("word 3", "word 4"),
    ]
    assert PairwiseOracle(again, cache=scores).judge(candidates(*chunks)) == found
    assert (again.asked, again.glanced) == ([], [])
    scores.close()


def test_what_has_contradicted_one_chunk_is_held_against_all_that_said_the_same() -> None:
    # Ten stale lines are nearer to each other than the update is to all but the last of them.
    stale = [f"lives in the old town {'x ' * n}".strip() for n in range(10)]
    # It is not the newest line either, so the first of them would not meet it by themselves.
    texts = [*stale, "lives in the old town of 3", "the old town has a fair"]
    chunks = [Chunk(id=str(n), text=t, at=day(n), seq=n + 1) for n, t in enumerate(texts)]
    oracle = PairwiseOracle(Glancing(), gate=TopicGate(_Line(texts)))
    assert {c.older for c in oracle.judge(candidates(*chunks))} == set("0123456789")


class Unmoved(Glancing):
    """Finds nothing likely at a glance."""

    def glance(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [GATE.promising / 2 for _ in pairs]


def test_of_many_pairs_behind_a_gate_the_unlikely_are_not_read_and_of_a_few_all_are() -> None:
    texts = [f"word {'x ' * n}".strip() for n in range(8)]
    chunks = [Chunk(id=str(n), text=t, at=day(n), seq=n + 1) for n, t in enumerate(texts)]
    many, few, ungated = Unmoved(), Unmoved(), Unmoved()
    PairwiseOracle(many, gate=TopicGate(_Line(texts))).judge(candidates(*chunks))
    PairwiseOracle(few, gate=TopicGate(_Line(texts))).judge(candidates(*chunks[:3]))
    PairwiseOracle(ungated).judge(candidates(*chunks))
    assert [len(c.asked) for c in (many, few, ungated)] == [0, 3, 28]
    bold = Unmoved()
    PairwiseOracle(bold, gate=TopicGate(_Line(texts)), threshold=0.01).judge(candidates(*chunks))
    assert bold.asked  # what it would take for a conflict is read


def test_what_can_not_be_ordered_is_read_however_unlikely() -> None:
    texts = [f"word {'x ' * n}".strip() for n in range(8)]
    chunks = [Chunk(id=str(n), text=text, at=None) for n, text in enumerate(texts)]
    classifier = Unmoved()
    PairwiseOracle(classifier, gate=TopicGate(_Line(texts))).judge(candidates(*chunks))
    assert len(classifier.asked) == 28


class Doubtful(Recording):
    """Its first guess and its verdict put two witnesses in different orders."""

    def glance(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [{"first": 0.9, "second": 0.7}[newer] for _, newer in pairs]

    def score(self, question: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        super().score(question, pairs)
        return [{"first": 0.6, "second": 0.65}[newer] for _, newer in pairs]


def test_asked_again_the_witness_is_the_same_and_nothing_more_is_read() -> None:
    scores = SQLiteScores()
    old = Chunk(id="o", text="old", at=day(0), seq=1)
    one = Chunk(id="a", text="first", at=day(1), seq=2, scope=Scope(user_id="x"))
    two = Chunk(id="b", text="second", at=day(1), seq=2, scope=Scope(user_id="x"))
    asked = candidates(replace(old, scope=Scope(user_id="x")), one, two)
    classifier = Doubtful()
    oracle = PairwiseOracle(classifier, cache=scores, threshold=0.55)
    found = oracle.judge(asked)
    read = len(classifier.asked)
    assert oracle.judge(asked) == found
    assert len(classifier.asked) == read
    scores.close()


def test_a_dated_chunk_does_not_take_the_place_of_what_can_not_be_ordered() -> None:
    texts = ["plain", *(f"other {n}" for n in range(6)), "new"]
    chunks = [Chunk(id=str(n), text=text, at=None) for n, text in enumerate(texts)]
    dated = Chunk(id="z", text="dated", at=day(1), seq=1)
    gate = TopicGate(_Line([*texts, "dated"]))
    found = PairwiseOracle(Recording(), gate=gate).judge(candidates(*chunks, dated))
    assert {"0", "7"} in [{c.older, c.newer} for c in found]


class _Line(HashEncoder):
    """Puts texts on an arc, each nearest to its neighbours."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self._angle = {text: 0.1 * n for n, text in enumerate(texts)}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        angles = np.array([self._angle.get(text, 0.0) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_what_the_cache_knows_is_not_judged_again() -> None:
    scores = SQLiteScores()
    pair = candidates(
        Chunk(id="o", text="old", at=day(1), seq=1), Chunk(id="n", text="new", at=day(2), seq=2)
    )
    first, second, other = Recording(), Recording(), Recording()
    other.id = "other@1"
    found = PairwiseOracle(first, cache=scores).judge(pair)
    assert PairwiseOracle(second, cache=scores).judge(pair) == found
    PairwiseOracle(other, cache=scores).judge(pair)
    assert [len(c.asked) for c in (first, second, other)] == [1, 0, 1]
    key = ScoreKey(scorer="recording@1", question="q")
    assert scores.get(replace(key, question="another question"), [("o", "n")]) == {}
    scores.put(key, {("o", "n"): float("nan"), ("o", "m"): 0.5})
    assert scores.get(key, [("o", "n"), ("o", "m")]) == {("o", "m"): 0.5}
    scores.close()


@pytest.mark.parametrize("question", ["tea", ""])
def test_the_gate_stops_what_has_nothing_to_do_with_the_question_or_the_other(
    question: str,
) -> None:
    texts = ["tea is old", "tea is new", "unlike any of it", "rust is old", "rust is new"]
    chunks = [Chunk(id=str(n), text=t, at=day(n), seq=n + 1) for n, t in enumerate(texts)]
    gate = TopicGate(HashEncoder(dimensions=512), replace(GATE, few=0, closeness=0.5))
    asked = replace(candidates(*chunks), query=question)
    met = gate.select(asked, list(itertools.combinations(chunks, 2)))
    found = {(one.text, other.text) for one, other in met}
    assert ("tea is old", "tea is new") in found
    assert (("rust is old", "rust is new") in found) == (not question)
    assert not any("unlike any of it" in pair for pair in found)


def test_a_few_pairs_need_only_be_half_as_close_and_to_each_other() -> None:
    texts = [f"word {'x ' * n}".strip() for n in range(12)]
    chunks = [Chunk(id=str(n), text=t, at=day(n), seq=n + 1) for n, t in enumerate(texts)]
    pairs = list(itertools.combinations(chunks, 2))
    # Neighbours on the arc have a cosine of 0.995: too little for this bound, enough for half.
    gate = TopicGate(_Line(texts), replace(GATE, closeness=1.5))
    assert gate.select(candidates(*chunks), pairs) == []
    assert gate.select(candidates(*chunks), pairs[: GATE.few]) == pairs[: GATE.few]
    assert (
        TopicGate(_Line(texts), replace(GATE, closeness=2.5)).select(candidates(*chunks), pairs[:1])
        == []
    )


def test_the_shipped_classifier_is_symmetric_and_tells_updates_from_look_alikes() -> None:
    classifier = default_classifier()
    update = ("The staging API listens on port 8080.", "Staging API: port is 9090 now.")
    question = "Which port does the staging API use?"
    forward, backward = classifier.score(question, [update, (update[1], update[0])])
    assert forward == backward
    assert forward > classifier.threshold
    alone = classifier.score(question, [update])[0]
    assert alone == forward  # whatever else is in the batch
    others = classifier.score(
        "",
        [
            ("I live in Porto.", "My brother Rui lives in Braga."),
            ("I live in Porto.", "Should I move to Lyon one day?"),
            ("Tea is in the cupboard.", "The deploy went out at noon."),
        ],
    )
    assert max(others) < classifier.threshold
    assert classifier.score("q", []) == []


@pytest.mark.parametrize(
    ("glance", "read"),
    [(-30.0, ["screen.onnx"]), (30.0, ["screen.onnx"]), (0.0, ["screen.onnx", "model.onnx"])],
)
def test_only_what_the_small_model_is_unsure_of_is_read_by_the_large_one(
    monkeypatch: pytest.MonkeyPatch, glance: float, read: list[str]
) -> None:
    ran: list[str] = []

    def run(self: CrossEncoder, row: Sequence[int], outputs: Sequence[str]) -> list[float]:
        ran.append(self.path.name)
        return [glance if self.path.name == "screen.onnx" else 30.0]

    monkeypatch.setattr(CrossEncoder, "run", run)
    classifier = LocalClassifier()
    pair = ("The staging API listens on port 8080.", "Staging API: port is 9090 now.")
    with one_call():
        guess = classifier.glance("", [pair])[0]
        score = classifier.score("", [pair])[0]
    assert ran == read
    assert (score >= classifier.threshold) == (glance >= 0)
    assert (guess == score) == (len(read) == 1)


def test_what_answers_a_question_scores_above_another_slot_or_person() -> None:
    right, slot, person = default_classifier().answers(
        "Where do I live?", ["I live in Porto.", "I work in Porto.", "My brother lives in Braga."]
    )
    assert right > 0.5 > max(slot, person)


def test_gold_answers_from_labels_in_either_order() -> None:
    chunks = [Chunk(id=name, text=name, at=day(n)) for n, name in enumerate("abc")]
    found = GoldOracle([("b", "a"), ("c", "elsewhere")]).judge(candidates(*chunks))
    assert [(c.older, c.newer, c.score) for c in found] == [("a", "b", 1.0)]


def test_an_id_names_everything_that_decides() -> None:
    encoder, classifier = default_encoder(), LocalClassifier()
    gate, focus = TopicGate(encoder), Focus(encoder)
    own = classifier.threshold

    def pairwise(**parts: Any) -> PairwiseOracle:
        given: dict[str, Any] = {"threshold": own, "gate": gate, "focus": focus, **parts}
        return PairwiseOracle(classifier, **given)

    chain = shipped_recipe().chain
    oracles: list[ConflictOracle] = [
        JointOracle(classifier, pairwise()),
        JointOracle(classifier, pairwise(), settings=replace(chain, switch=0.3)),
        pairwise(),
        pairwise(focus=None),
        pairwise(gate=None),
        pairwise(gate=TopicGate(encoder, replace(GATE, near=5))),
        pairwise(gate=TopicGate(HashEncoder())),
        pairwise(threshold=0.5),
    ]
    ids = [oracle.id for oracle in oracles]
    assert len(set(ids)) == len(ids)
    # The shipped oracle is what its model's config describes, so the model's id says it all.
    assert ids[0] == default_oracle().id == classifier.id
    assert "focus=none" in ids[3]


def test_scores_of_a_focused_and_a_plain_oracle_are_kept_apart() -> None:
    scores = SQLiteScores()
    pair = (
        Chunk(id="o", text="I work at Google. My dog is Rex.", at=day(1)),
        Chunk(id="n", text="I work at Meta.", at=day(2)),
    )
    focused = PairwiseOracle(Recording(), focus=Focus(HashEncoder()), cache=scores)
    plain = Recording()
    focused.judge(candidates(*pair))
    PairwiseOracle(plain, cache=scores).judge(candidates(*pair))
    assert plain.asked  # it did not take the other's score for its own
    scores.close()
