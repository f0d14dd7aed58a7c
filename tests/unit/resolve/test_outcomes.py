"""Verdicts become outcomes, sentence by sentence; a person's word outranks every model's."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcmem import Candidate, CandidateSet, Chunk, Memory, Resolution, Scope, SearchResult, Turn
from gcmem.resolve.outcomes import Policy, outcomes
from gcmem.types import TRUSTED, UNTRUSTED, Claim, JudgeKind, Verdict
from tests.conftest import NOW, day
from tests.laws.test_judging import RuleJudge, remembering

SURE, LIKELY = 0.9, 0.5
HOUR = timedelta(hours=1)


def candidate(name: str, text: str, **fields: Any) -> Candidate:
    """A candidate called a, b, c and so on, one a day in this order."""
    number = ord(name) - ord("a")
    known = {"at": day(number), "recorded_at": day(number), "seq": number + 1}
    return Candidate(
        chunk=Chunk(id=name, text=text, **{**known, **fields}), relevance=0.5, origin="mtm"
    )


def verdict(older: Candidate, newer: Candidate, *words: str, **fields: Any) -> Verdict:
    """A sure verdict on two chunks, or on the sentences with these words in each of them."""
    spans = [
        _span(item, word) for item, word in zip((older, newer), words or ("", ""), strict=True)
    ]
    known: dict[str, Any] = {"score": 0.95, "oracle": "rule@1", "recorded_at": NOW}
    return Verdict(
        older=older.chunk.id, older_span=spans[0], newer=newer.chunk.id, newer_span=spans[1],
        **{**known, **fields},
    )  # fmt: skip


def _span(item: Candidate, word: str) -> tuple[int, int]:
    if not word:
        return 0, len(item.chunk.text)
    (found,) = (m for m in re.finditer(r"[^.。]+[.。]", item.chunk.text) if word in m[0])
    return found.start() + len(found[0]) - len(found[0].lstrip()), found.end()


def resolved(
    items: Sequence[Candidate], verdicts: Sequence[Verdict], *, query: str = "", **choices: Any
) -> Resolution:
    known: dict[str, Any] = {"sure": SURE, "likely": LIKELY, "policy": Policy()}
    candidates = CandidateSet(query=query, items=tuple(items))
    return outcomes(candidates, verdicts, **{**known, **choices})


def kept(found: Resolution | SearchResult) -> list[str]:
    return [item.chunk.text for item in found.kept]


OLD = candidate("a", "I live in Porto. I play the cello. My sister is called Ines.")
NEW = candidate("b", "I live in Lyon now.")


def test_a_message_loses_only_the_sentence_that_is_outdated() -> None:
    found = resolved([OLD, NEW], [verdict(OLD, NEW, "Porto", "Lyon")])
    assert kept(found) == ["I play the cello. My sister is called Ines.", "I live in Lyon now."]
    assert [OLD.chunk.text[slice(*span)] for span in found.kept[0].struck] == ["I live in Porto."]
    (shadow,) = found.shadows
    assert shadow.claim is not None
    assert shadow.witness_claim is not None
    assert (shadow.claim.text, shadow.witness_claim.text) == (
        "I live in Porto.",
        "I live in Lyon now.",
    )
    assert (shadow.candidate, shadow.witness, shadow.is_whole) == (OLD, NEW, False)


def test_several_sentences_can_go_one_by_one() -> None:
    cello = candidate("c", "I sold the cello.")
    verdicts = [verdict(OLD, NEW, "Porto", "Lyon"), verdict(OLD, cello, "cello", "cello")]
    found = resolved([OLD, NEW, cello], verdicts)
    assert kept(found)[0] == "My sister is called Ines."
    assert [shadow.witness for shadow in found.shadows] == [NEW, cello]


def test_a_message_is_gone_when_all_it_said_is_outdated() -> None:
    old = candidate("a", "Hi there! I live in Porto.")
    found = resolved([old, NEW], [verdict(old, NEW, "Porto", "Lyon")])
    assert kept(found) == ["I live in Lyon now."]  # a greeting is no reason to stay
    assert found.shadows[0].is_whole


def test_a_message_is_gone_when_what_is_left_does_not_bear_on_the_question() -> None:
    def similar(question: str, texts: Sequence[str]) -> list[float]:
        return [0.8 if "live" in text else 0.59 if "cello" in text else 0.1 for text in texts]

    verdicts = [verdict(OLD, NEW, "Porto", "Lyon")]
    asked = resolved([OLD, NEW], verdicts, query="Where does Ana live?", similar=similar)
    assert kept(asked) == ["I live in Lyon now."]
    assert asked.shadows[0].is_whole
    overview = resolved([OLD, NEW], verdicts, similar=similar)
    assert len(overview.kept) == 2


@pytest.mark.parametrize(("left", "stays"), [(0.61, True), (0.59, False)])
def test_what_is_left_bears_if_it_is_almost_as_similar_as_what_is_gone(
    left: float, stays: bool
) -> None:
    found = resolved(
        [OLD, NEW],
        [verdict(OLD, NEW, "Porto", "Lyon")],
        query="?",
        similar=lambda _, texts: [0.8 if "live" in text else left for text in texts],
    )
    assert (len(found.kept) == 2) is stays


@pytest.mark.parametrize("gone", [-0.9, -0.1, 0.0, 0.7])
def test_what_is_at_least_as_similar_as_what_is_gone_always_stays(gone: float) -> None:
    found = resolved(
        [OLD, NEW],
        [verdict(OLD, NEW, "Porto", "Lyon")],
        query="?",
        similar=lambda _, texts: [gone for _ in texts],
    )
    assert len(found.kept) == 2


def test_sentences_without_spaces_between_words_count_too() -> None:
    old, new = candidate("a", "我住在波尔图。我会拉大提琴。"), candidate("b", "我现在住在里昂。")
    found = resolved([old, new], [verdict(old, new, "波尔图", "里昂")])
    assert kept(found) == ["我会拉大提琴。", "我现在住在里昂。"]


@pytest.mark.parametrize(
    ("score", "outcome"),
    [
        (0.49, "current"),
        (0.5, "doubtful"),
        (0.89, "doubtful"),
        (0.9, "outdated"),
        (1.0, "outdated"),
    ],
)
def test_the_score_decides_what_a_verdict_does(score: float, outcome: str) -> None:
    old = candidate("a", "I live in Porto.")
    found = resolved([old, NEW], [verdict(old, NEW, score=score)])
    assert [s.candidate for s in found.shadows] == ([old] if outcome == "outdated" else [])
    assert [d.candidate for d in found.doubtful] == ([old] if outcome == "doubtful" else [])
    assert kept(found) == ([] if outcome == "outdated" else ["I live in Porto."]) + kept_new()


def kept_new() -> list[str]:
    return [NEW.chunk.text]


def test_a_doubt_names_both_sentences_and_both_are_kept() -> None:
    found = resolved([OLD, NEW], [verdict(OLD, NEW, "Porto", "Lyon", score=0.6)])
    (doubt,) = found.doubtful
    assert (doubt.candidate, doubt.witness) == (OLD, NEW)
    assert (doubt.claim.text, doubt.witness_claim.text) == ("I live in Porto.", NEW.chunk.text)
    assert found.kept == (OLD, NEW)


def test_what_is_outdated_is_not_doubtful_as_well() -> None:
    third = candidate("c", "We live in Nice.")
    sure, unsure = (
        verdict(OLD, NEW, "Porto", "Lyon"),
        verdict(OLD, third, "Porto", "Nice", score=0.6),
    )
    assert resolved([OLD, NEW, third], [sure, unsure]).doubtful == ()
    whole = replace(sure, older_span=(0, len(OLD.chunk.text)), by="person", score=1.0)
    other = verdict(OLD, third, "cello", "Nice", score=0.6)
    assert resolved([OLD, NEW, third], [whole, other]).doubtful == ()
    # Another sentence of the same message may be doubtful.
    found = resolved([OLD, NEW, third], [sure, other])
    assert [doubt.claim.text for doubt in found.doubtful] == ["I play the cello."]


def test_an_unqualified_judge_reports_and_removes_nothing() -> None:
    third = candidate("c", "I sold the cello.")
    items = [OLD, NEW, third]
    verdicts = [verdict(OLD, NEW, "Porto", "Lyon"), verdict(NEW, third)]
    found = resolved(items, verdicts, policy=Policy(removes=False))
    assert found.kept == (OLD, NEW, third)
    assert [(s.candidate, s.is_whole) for s in found.shadows] == [(OLD, False), (NEW, True)]


@pytest.mark.parametrize("by", ["model", "person"])
def test_a_pinned_message_is_never_removed(by: JudgeKind) -> None:
    verdicts = [verdict(OLD, NEW, "Porto", "Lyon", score=1.0, by=by)]
    found = resolved([OLD, NEW], verdicts, pinned=frozenset({"a"}))
    assert found.kept == (OLD, NEW)
    assert found.shadows == ()
    assert [doubt.candidate for doubt in found.doubtful] == [OLD]
    assert resolved([OLD, NEW], verdicts, pinned=frozenset({"b"})).shadows != ()


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Ich wohne in Porto.", "Ich wohne jetzt in Lyon."),
        ("I live in Porto.", "Ich wohne jetzt in Lyon."),
        ("Ich wohne in Porto.", "I live in Lyon now."),
    ],
)
def test_a_judge_that_reads_english_only_raises_doubts_in_other_languages(
    older: str, newer: str
) -> None:
    old, new = candidate("a", older), candidate("b", newer)
    english = Policy(english_only=True)
    found = resolved([old, new], [verdict(old, new)], policy=english)
    assert found.kept == (old, new)
    assert [doubt.candidate for doubt in found.doubtful] == [old]
    assert len(resolved([old, new], [verdict(old, new)]).shadows) == 1
    said = resolved([old, new], [verdict(old, new, by="person", score=1.0)], policy=english)
    assert said.kept == (new,)


def test_english_is_told_from_other_languages_by_the_sentence() -> None:
    old = candidate("a", "I live in the city of Porto. Ich spiele nicht das Klavier.")
    found = resolved(
        [old, NEW], [verdict(old, NEW, "Porto", "Lyon")], policy=Policy(english_only=True)
    )
    assert kept(found)[0] == "Ich spiele nicht das Klavier."


def skewed_pair() -> tuple[Candidate, Candidate]:
    """The first writer's clock is hours ahead, so nobody knows which came first."""
    ahead = day(0) + 5 * HOUR
    return (
        candidate("a", "I live in Porto.", at=day(0), recorded_at=ahead),
        candidate("b", "I live in Lyon.", at=day(0) + HOUR, recorded_at=day(0)),
    )


def tied_pair() -> tuple[Candidate, Candidate]:
    return (
        candidate("a", "I live in Porto.", at=None, seq=None),
        candidate("b", "I live in Lyon.", at=None, seq=None),
    )


def unequal_pair() -> tuple[Candidate, Candidate]:
    return (
        candidate("a", "I live in Porto.", trust=TRUSTED),
        candidate("b", "I live in Lyon.", trust=UNTRUSTED),
    )


WARY = Policy(max_skew=HOUR, respect_trust=True)


@pytest.mark.parametrize("pair", [skewed_pair(), tied_pair(), unequal_pair()])
def test_ties_and_skewed_clocks_and_lower_trust_are_doubtful_and_kept(
    pair: tuple[Candidate, Candidate],
) -> None:
    old, new = pair
    found = resolved(pair, [verdict(old, new)], policy=WARY)
    assert found.kept == pair
    assert found.shadows == ()
    assert [(doubt.candidate, doubt.witness) for doubt in found.doubtful] == [pair]
    reported = found.undecided + found.outranked
    assert [(c.older, c.newer) for c in reported] == [("a", "b")]


@pytest.mark.parametrize("pair", [skewed_pair(), unequal_pair()])
def test_a_person_settles_what_clocks_and_trust_leave_open(
    pair: tuple[Candidate, Candidate],
) -> None:
    found = resolved(pair, [verdict(*pair, by="person", score=1.0)], policy=WARY)
    assert found.kept == pair[1:]
    assert found.doubtful == ()


def test_a_person_who_names_the_newer_one_first_removes_nothing() -> None:
    old = candidate("a", "I live in Porto.")
    found = resolved([old, NEW], [verdict(NEW, old, by="person", score=1.0)])
    assert found.kept == (old, NEW)
    assert found.shadows == ()


@pytest.mark.parametrize("length", [2, 3, 7])
def test_a_chain_collapses_to_its_last_link(length: int) -> None:
    items = [candidate("abcdefg"[n], f"My city is number {n}.") for n in range(length)]
    links = [verdict(older, newer) for older, newer in pairwise(items)]
    found = resolved(items[::-1], links)
    assert found.kept == (items[-1],)
    assert len(found.shadows) == length - 1


def test_who_goes_back_to_the_first_state_keeps_the_last_message() -> None:
    cities = ("Porto", "Lyon", "Porto")
    items = [candidate("abc"[n], f"I live in {city}.") for n, city in enumerate(cities)]
    found = resolved(items, [verdict(items[0], items[1]), verdict(items[1], items[2])])
    assert found.kept == (items[2],)


def test_a_verdict_on_a_chunk_that_is_no_candidate_does_nothing() -> None:
    assert resolved([OLD], [verdict(OLD, NEW)]).kept == (OLD,)
    assert resolved([NEW], [verdict(OLD, NEW)]).kept == (NEW,)


def test_two_users_never_end_what_the_other_said() -> None:
    old, new = (
        candidate(name, f"I live in {city}.", scope=Scope(user_id=user))
        for name, city, user in (("a", "Porto", "ana"), ("b", "Lyon", "bob"))
    )
    for score in (0.6, 0.95):
        found = resolved([old, new], [verdict(old, new, score=score)])
        assert found == Resolution(kept=(old, new), shadows=(), undecided=())


@dataclass(frozen=True)
class Case:
    items: tuple[Candidate, ...]
    verdicts: tuple[Verdict, ...]
    policy: Policy
    pinned: frozenset[str]

    def resolved(self, **changes: Any) -> Resolution:
        now = replace(self, **changes)
        return resolved(
            now.items,
            now.verdicts,
            query="?",
            policy=now.policy,
            pinned=now.pinned,
            similar=lambda _, texts: [crc32(text.encode()) % 200 / 100 - 1 for text in texts],
        )


KINDS: list[JudgeKind] = ["model", "model", "person"]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any verdicts on the sentences of any messages: ties, skewed clocks, users, trust, pins."""
    items = []
    for number in range(draw(st.integers(0, 6))):
        at = draw(st.none() | st.integers(0, 3))
        sentences = [f"My fact {n} is {number}." for n in range(draw(st.integers(1, 3)))]
        items.append(
            candidate(
                "abcdef"[number],
                " ".join(sentences),
                at=None if at is None else day(at),
                recorded_at=draw(st.none() | st.integers(0, 3).map(day)),
                seq=draw(st.just(number + 1) | st.none()),
                scope=Scope(user_id=draw(st.sampled_from(["ana", "ana", "bob"]))),
                trust=draw(st.integers(0, 1)),
            )
        )
    verdicts = []
    for _ in range(draw(st.integers(0, 10)) if len(items) > 1 else 0):
        older, newer = draw(st.permutations(items))[:2]
        by: JudgeKind = draw(st.sampled_from(KINDS))
        places = [_place(draw, item) for item in (older, newer)]
        verdicts.append(
            Verdict(
                older=older.chunk.id, older_span=places[0],
                newer=newer.chunk.id, newer_span=places[1],
                score=1.0 if by == "person" else draw(st.sampled_from([0.3, 0.6, 0.9, 0.95])),
                oracle=draw(st.sampled_from(["one@1", "two@1"])),
                by=by,
            )
        )  # fmt: skip
    policy = Policy(max_skew=draw(st.sampled_from([None, HOUR])), respect_trust=draw(st.booleans()))
    pinned = draw(st.frozensets(st.sampled_from("abcdef"), max_size=2))
    return Case(tuple(items), tuple(verdicts), policy, pinned)


def _place(draw: st.DrawFn, item: Candidate) -> tuple[int, int]:
    text = item.chunk.text
    whole = (0, len(text))
    return draw(st.sampled_from([whole, *(m.span() for m in re.finditer(r"My [^.]+\.", text))]))


@settings(max_examples=200)
@given(cases(), st.randoms(use_true_random=False))
def test_neither_the_order_of_candidates_nor_of_verdicts_matters(
    case: Case, rng: random.Random
) -> None:
    found = case.resolved()
    assert case.resolved(verdicts=tuple(rng.sample(case.verdicts, len(case.verdicts)))) == found
    shuffled = case.resolved(items=tuple(rng.sample(case.items, len(case.items))))
    for name in ("kept", "shadows", "undecided", "skewed", "outranked", "doubtful"):
        assert set(getattr(shuffled, name)) == set(getattr(found, name))


@settings(max_examples=200)
@given(cases())
def test_to_resolve_what_is_kept_once_more_changes_nothing(case: Case) -> None:
    once = case.resolved()
    twice = case.resolved(items=once.kept)
    assert twice.kept == once.kept
    assert twice.shadows == ()


@settings(max_examples=200)
@given(cases())
def test_something_is_always_kept_and_nothing_gets_lost(case: Case) -> None:
    found = case.resolved()
    whole = [s.candidate.chunk.id for s in found.shadows if s.is_whole]
    left = [item.chunk.id for item in found.kept]
    assert bool(left) == bool(case.items)
    assert sorted({*whole, *left}) == [item.chunk.id for item in case.items]
    assert not {*whole} & {*left}
    assert not {*whole} & case.pinned
    texts = {item.chunk.id: item.chunk.text for item in case.items}
    for item in found.kept:
        gone = [
            s.claim.span for s in found.shadows if s.claim and s.candidate.chunk.id == item.chunk.id
        ]
        assert sorted(gone) == sorted(item.struck)
        assert not item.struck or item.chunk.id not in case.pinned
        assert item.struck or item.chunk.text == texts[item.chunk.id]


@settings(max_examples=200)
@given(cases())
def test_every_shadow_and_every_doubt_has_a_verdict_that_says_so(case: Case) -> None:
    found = case.resolved()
    places = {verdict.pair for verdict in case.verdicts}
    for shadow in found.shadows:
        assert shadow.claim is not None
        assert shadow.witness_claim is not None
        assert shadow.candidate.chunk.precedes(shadow.witness.chunk)
        assert (shadow.claim.id, shadow.witness_claim.id) in places
        assert shadow.conflict.score >= SURE
    left = {item.chunk.id: item for item in found.kept}
    for doubt in found.doubtful:
        assert doubt.conflict.score >= LIKELY
        assert (doubt.claim.id, doubt.witness_claim.id) in places
        assert doubt.candidate.chunk.precedes(doubt.witness.chunk) is not False
        struck = left[doubt.candidate.chunk.id].struck
        assert not any(_overlap(doubt.claim.span, span) for span in struck)


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


# A person's word, and what a memory makes of all this.


def tell(memory: Memory, *texts: str, **fields: Any) -> None:
    """Adds messages of one person, one a day, under the ids m0, m1 and so on."""
    first = len(memory.get_all())
    for number, text in enumerate(texts, first):
        memory.add(Turn(text=text, at=day(number), id=f"m{number}"), user_id="ana", **fields)


def seen(memory: Memory) -> list[str]:
    return sorted(kept(memory.search("my city", user_id="ana")))


CITIES = ("my city is porto.", "my city is lyon.")


def test_a_search_may_act_on_what_is_likely_if_it_is_told_to() -> None:
    texts = ("my city is porto.", "my city is perhaps.")
    for act_on, left in (("sure", [*texts[::-1]]), ("likely", [texts[1]])):
        with remembering(settings={"act_on": act_on}) as memory:
            tell(memory, *texts)
            found = memory.search("my city", user_id="ana")
            assert sorted(kept(found)) == left
            assert len(found.doubtful) == len(left) - 1


def test_the_threshold_of_a_judge_can_be_raised() -> None:
    with remembering(settings={"sure": 0.99}) as memory:
        tell(memory, *CITIES)
        found = memory.search("my city", user_id="ana")
        assert len(found.kept) == 2
        assert [doubt.candidate.chunk.id for doubt in found.doubtful] == ["m0"]


def test_a_pin_keeps_a_message_until_it_is_taken_back() -> None:
    with remembering() as memory:
        tell(memory, *CITIES)
        memory.pin("m0")
        assert seen(memory) == sorted(CITIES)
        assert memory.search("my city", user_id="ana").outcome("m0") == "doubtful"
        memory.unpin("m0")
        assert seen(memory) == ["my city is lyon."]


def test_a_person_can_reject_a_verdict_and_take_that_back() -> None:
    with remembering() as memory:
        tell(memory, *CITIES)
        assert seen(memory) == ["my city is lyon."]
        memory.reject("m0", "m1", by="Ana")
        assert seen(memory) == sorted(CITIES)
        assert memory.search("my city", user_id="ana").doubtful == ()
        memory.undo("m0", "m1", by="Bo")  # whoever says it
        assert seen(memory) == ["my city is lyon."]


def test_a_person_can_confirm_what_no_model_found_and_take_that_back() -> None:
    with remembering() as memory:
        tell(memory, "my city is porto.", "we all moved to lyon.")
        assert len(seen(memory)) == 2
        memory.confirm("m0", "m1", by="Ana", reason="she told me")
        found = memory.search("my city", user_id="ana")
        assert kept(found) == ["we all moved to lyon."]
        assert isinstance(found.shadows[0].conflict, Verdict)
        assert found.shadows[0].conflict.reason == "she told me"
        memory.undo("m0", "m1", by="Ana")
        assert len(seen(memory)) == 2


def test_the_last_word_of_several_people_counts() -> None:
    with remembering() as memory:
        tell(memory, *CITIES)
        for _ in range(2):
            memory.reject("m0", "m1", by="Ana")
            assert len(seen(memory)) == 2
            memory.confirm("m0", "m1", by="Bo")
            assert len(seen(memory)) == 1


class Blind(RuleJudge):
    """Sees no conflict at all."""

    def __init__(self) -> None:
        super().__init__("blind@1")

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Any:
        return [ruling._replace(score=0.0) for ruling in super().rule(pairs)]


def test_a_persons_word_outlives_every_judge(tmp_path: Any) -> None:
    path = tmp_path / "m.db"
    with remembering(path, judge=Blind()) as memory:
        tell(memory, *CITIES, "my diet is 1.", "my diet is 2.")
        memory.judge()
        assert len(seen(memory)) == 4
        memory.confirm("m0", "m1")
        memory.reject("m2", "m3")
    for judge in (RuleJudge("rule@2"), Blind(), RuleJudge("rule@3")):
        with remembering(path, judge=judge) as memory:
            memory.judge()
            assert seen(memory) == ["my city is lyon.", "my diet is 1.", "my diet is 2."]


def test_to_confirm_one_sentence_takes_no_verdict_on_another_back() -> None:
    with remembering() as memory:
        tell(memory, "my city is porto. my diet is 1.", "my city is lyon. my diet is 2.")
        memory.judge()
        for _ in range(2):
            shadows = memory.outcomes(memory.get_all()).shadows
            assert [s.claim.text for s in shadows if s.claim] == [
                "my city is porto.",
                "my diet is 1.",
            ]
            memory.confirm("m0", "m1")


def test_to_reject_a_verdict_spares_the_whole_message() -> None:
    with remembering() as memory:
        tell(memory, "my city is porto. my diet is 1.", "my city is lyon. my diet is 2.")
        memory.judge()
        memory.reject("m0", "m1")
        assert "my city is porto. my diet is 1." in seen(memory)
