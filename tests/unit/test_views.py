"""Which view a question asks for, and what each view shows."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcmem import LLMReader, Memory, SearchResult, Settings
from gcmem.defaults import make_ledger_resolver
from gcmem.errors import InvalidInputError
from gcmem.ingest.claims import EveryStatement
from gcmem.judge.ahead import Judging
from gcmem.protocols import Reads, Ruling
from gcmem.testing import HashEncoder, RuleOracle, ScriptedChat
from gcmem.types import Claim, JudgeKind, Mode, View
from gcmem.views import view_of
from tests.conftest import NOW, day, same_slot

VIEWS: tuple[View, ...] = ("current", "past", "changes")

ABOUT_THE_PAST = """
Where did I live before?
Where did I live before Lyon?
Where did Ana live before she moved to Lyon?
Before I joined Acme, where did I work?
What was my address before the move?
What was the port before the upgrade?
What phone did I have before this one?
Who was my doctor before Dr. Lee?
Which editor did I use prior to VS Code?
Who had the key before?
What did I use to drink in the morning?
What did I used to eat for breakfast?
Didn't I use to be a vegetarian?
Which team did my brother use to play for?
The cafe I used to go to, what was it called?
What is my previous address?
Who was my previous manager?
Where did Ana previously work?
What was her former job title?
Where was the company formerly based?
What is my old phone number?
What was Ana's old address?
Who lives at my old flat?
What was the old password policy?
What did I originally plan for the wedding?
What was our original budget?
What was the initial deadline?
Which framework did we initially choose?
What did I think of the job at first?
Who was my best friend back then?
What car was I driving back when I lived in Porto?
How did I commute in the past?
What did I believe at the time?
Which of my habits are no longer true?
What do I not eat anymore?
Which medicine don't I take any more?
Which of these notes are outdated?
Who is my ex-husband?
Where did I live in 2019?
Where was I working two years ago?
What did Ana weigh last year?
Who was my landlord in March 2022?
What did I eat as a child?
Where did Ben live when he was a student?
What was my first job?
What was my last address?
Which gym have I cancelled?
What hobby did I give up?
Which job did I leave?
Do I go to the gym more often than I did previously?
Was I ever a vegetarian?
Have I always lived in Lyon?
Where'd I live before this?
""".strip().splitlines()

ABOUT_A_CHANGE = """
When did I move?
When did I move to Lyon?
When’d we move?
When did Ana change jobs?
When did I switch to tea?
When did Ben stop smoking?
When did I start running?
When did she quit her job?
When exactly did we switch to Postgres?
When was the meeting moved?
When was the default port changed?
When have we last changed the password?
When did I become a vegetarian?
When did my sister get married?
When did Ana go vegan?
When did my parents break up?
When did we leave Slack?
In which year did I move to Porto?
What month did I start at Acme?
On what date did the team switch tools?
At what point did I stop eating meat?
Do you remember when I stopped drinking coffee?
Tell me when Ana finally quit.
Why did I switch from tea to coffee?
Why did Ana leave Acme?
Why have we changed the supplier?
How has my diet changed?
How have my plans changed since spring?
How did my opinion of the project change?
How has the deadline evolved?
How often did I change jobs?
How many times have I moved?
How frequently has the password changed?
How long ago did I move here?
How long did I live in Porto?
How long did Ana work at Acme?
Since when do I work at Acme?
Since when has she been vegan?
What changed?
What has changed in my life?
What's changed about the release schedule?
What is different about my diet now?
Has my address changed?
Did the price change?
What did I switch from?
Where did Ana move from?
Who replaced Tom as my manager?
What is the history of my addresses?
Show me the timeline of my jobs.
My employment history, please
How has my weight developed over time?
Which cities have I lived in?
Where has Ana worked?
How many jobs have I had?
How much do I run compared to last year?
List all the places I've lived.
""".strip().splitlines()

ABOUT_THE_PRESENT = """
Before the meeting, what should I bring?
What do I usually do before bed?
What do I have to finish before Friday?
Can I eat before the blood test?
Should I call Ana before I leave?
What is the shop's name on the street before the bridge?
Where do I live?
Where does Ana live now?
What is my phone number?
What do I eat for breakfast?
Who is my manager?
What is Ana allergic to?
Do I still live in Porto?
What is my current address?
Which tea do I like?
How old am I?
How old is my daughter?
Who is my oldest friend?
What does my old friend Tom do?
What are we doing in the old town?
What am I used to drinking in the morning?
Is Ana used to the cold?
I'm not used to driving on the left, any tips?
What is the oven used to bake?
When is my next appointment?
When does the shop open?
When does the course start?
When should I start packing?
When will we move?
How do I change my password?
Do I have to change trains?
How can I switch off the alarm?
How long does the flight take?
How long have I worked at Acme?
How long have I had my cat?
How often do I go running?
How many bikes do I own?
How many siblings do I have?
Where did I move to?
What did I switch to?
Where did I put the keys?
What did Ana say about the concert?
Who gave me the blue mug?
What did I buy at the market yesterday?
What is my email, since I changed providers?
What is Ana's address now that she has moved?
Where do I currently keep my old sneakers?
In our previous conversation you named a book. Which one?
How many pages of 'A Short History of Nearly Everything' have I read?
Did I finish "The Way We Lived Before"?
What did I do in the past two weeks?
What time is it at half past five in Tokyo?
What do I want to start next year?
What is my first name?
Where is the nearest gym?
¿Dónde vivo?
Wo wohne ich?
""".strip().splitlines()


@pytest.mark.parametrize("question", ABOUT_THE_PAST)
def test_a_question_about_the_past_is_recognized(question: str) -> None:
    assert view_of(question) == "past"


@pytest.mark.parametrize("question", ABOUT_A_CHANGE)
def test_a_question_about_a_change_is_recognized(question: str) -> None:
    assert view_of(question) == "changes"


@pytest.mark.parametrize("question", ABOUT_THE_PRESENT)
def test_every_other_question_is_about_the_present(question: str) -> None:
    assert view_of(question) == "current"


def test_a_given_view_wins_over_the_words() -> None:
    assert [view_of("Where did I live before?", view) for view in VIEWS] == list(VIEWS)


def test_the_end_of_a_long_text_counts() -> None:
    story = "It was a long day and the sun shone. " * 50
    assert view_of(story + "Where do I live?") == "current"
    assert view_of(story + "When did I move?") == "changes"


@pytest.mark.parametrize("words", ["when did ", "did i have ", "what have i ", "not any ", "'\" "])
def test_no_question_takes_long_to_read(words: str) -> None:
    started = time.perf_counter()
    view_of(words * 100_000)
    assert time.perf_counter() - started < 1


class SlotJudge:
    """Judges "slot=x" against "slot=y"; a value with a question mark leaves it in doubt."""

    id = "slots@1"
    kind: JudgeKind = "model"
    reads = Reads(most=50, similarity=-1.0)
    sure, likely, floor = 0.9, 0.4, 0.1

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        return [Ruling(self._score(older.text, newer.text)) for older, newer in pairs]

    def _score(self, older: str, newer: str) -> float:
        (a, _, old), (b, _, new) = older.partition("="), newer.partition("=")
        if a != b or old == new:
            return 0.0
        return 0.5 if "perhaps" in new else 1.0


@contextmanager
def judged_memory() -> Iterator[Memory]:
    """A memory that judges claims by a rule, sentence by sentence."""
    with Memory(
        ":memory:",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        settings=Settings(judge="manual", judge_budget_ms=60_000),
        require_qualified=False,
        clock=lambda: NOW,
    ) as memory:
        judging = Judging(
            memory.store,
            detector=EveryStatement(memory.encoder),
            judge=SlotJudge(),
            neighbours=lambda text, vector, where: list(memory.store.log.scan(where)),
            clock=lambda: NOW,
        )
        memory.resolver = make_ledger_resolver(
            memory.store, judging, encoder=memory.encoder, settings=memory.settings, removes=True
        )
        yield memory


def texts(result: SearchResult) -> list[str]:
    return [item.chunk.text for item in result]


def test_the_past_shows_what_is_outdated_by_relevance(memory: Memory) -> None:
    memory.add("city=porto", at=day(1))
    memory.add("city=lyon is where the city is", at=day(2))
    now = memory.search("city", view="current")
    past = memory.search("city", view="past")
    assert texts(now) == ["city=lyon is where the city is"]
    assert texts(past) == [item.chunk.text for item in past.candidates]
    assert set(texts(past)) == {"city=porto", "city=lyon is where the city is"}
    assert past.kept == past.ranked
    assert past.shadows == now.shadows
    assert [s.candidate.chunk.text for s in past.shadows] == ["city=porto"]


def test_changes_are_shown_oldest_first(memory: Memory) -> None:
    for number in (3, 1, 2):
        memory.add(f"city={number}", at=day(number))
    result = memory.search("city", view="changes")
    assert texts(result) == ["city=1", "city=2", "city=3"]
    assert result.kept == result.ranked


def test_changes_are_those_of_the_most_relevant_chunks(memory: Memory) -> None:
    memory.add("nothing of the kind", at=day(0))
    memory.add("city=porto", at=day(1))
    memory.add("city=lyon", at=day(2))
    assert texts(memory.search("city", view="changes", k=2)) == ["city=porto", "city=lyon"]


@pytest.mark.parametrize(
    ("question", "view"),
    [
        ("Which city is it?", "current"),
        ("Which city was it before?", "past"),
        ("When did the city change?", "changes"),
    ],
)
def test_the_words_choose_the_view(memory: Memory, question: str, view: View) -> None:
    memory.add("city=porto", at=day(1))
    memory.add("city=lyon", at=day(2))
    auto, chosen = memory.search(question), memory.search(question, view=view)
    assert auto.view == memory.ask(question, options=["porto", "lyon"]).view == view
    assert auto == replace(chosen, timings=auto.timings)


def test_the_past_shows_the_sentences_that_were_struck() -> None:
    with judged_memory() as memory:
        memory.add("city=porto. The city is lovely in spring.", at=day(1))
        memory.add("city=lyon.", at=day(2))
        now = memory.search("lovely city in spring", view="current")
        past = memory.search("lovely city in spring", view="past")
    assert sorted(texts(now)) == ["The city is lovely in spring.", "city=lyon."]
    assert sorted(texts(past)) == ["city=lyon.", "city=porto. The city is lovely in spring."]
    assert not any(item.struck for item in past)
    assert past.shadows == now.shadows


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("diet", "city", "port")),
            st.sampled_from(("1", "2", "3", "perhaps 4")),
            st.sampled_from(("", ". We talked about the city and the port", ". diet=1")),
            st.integers(0, 9),
        ),
        max_size=12,
    ),
    st.integers(1, 5),
    st.booleans(),
)
def test_every_view_finds_the_same_shadows_and_the_current_one_changes_nothing(
    said: list[tuple[str, str, str, int]], k: int, by_sentence: bool
) -> None:
    with judged_memory() as memory:
        if not by_sentence:
            memory.resolver = memory.read_resolver
        for slot, value, more, number in said:
            memory.add(f"{slot}={value}{more}.", at=day(number))
        found = {view: memory.search("city port", k=k, view=view) for view in VIEWS}
        candidates = memory.candidates("city port", k=k)
        resolution = memory.resolve(candidates)
    for view, result in found.items():
        assert result.view == view
        assert result.candidates == candidates
        assert result.shadows == resolution.shadows
        assert (result.doubtful, result.undecided) == (resolution.doubtful, resolution.undecided)
        assert result.ranked == result.kept
        assert len(result) <= k
    assert found["current"].kept == resolution.kept[:k]
    assert found["past"].kept == candidates.items[:k]
    assert set(found["changes"].kept) == set(candidates.items[:k])
    times = [item.chunk.at for item in found["changes"]]
    assert times == sorted(times, key=str)


@pytest.mark.parametrize("mode", get_args(Mode))
def test_the_mode_decides_in_the_current_view_alone(memory: Memory, mode: Mode) -> None:
    memory.add("city=porto", at=day(1))
    memory.add("city=lyon", at=day(2))
    shown = {view: texts(memory.search("city", view=view, mode=mode)) for view in VIEWS}
    ended = [] if mode == "drop" else ["city=porto"]
    assert sorted(shown["current"]) == sorted(["city=lyon", *ended])
    assert sorted(shown["past"]) == shown["changes"][::-1] == ["city=lyon", "city=porto"]


@pytest.mark.filterwarnings("ignore:oracle 'rule@1' was measured as unfit")
def test_what_an_unfit_oracle_reports_is_listed_as_unremoved() -> None:
    with Memory(
        ":memory:",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        qualification={RuleOracle.id: "unfit"},
        clock=lambda: NOW,
    ) as memory:
        (old,) = memory.add("city=porto", at=day(1))
        memory.add("city=lyon", at=day(2))
        assert {memory.search("city", view=view).unremoved for view in VIEWS} == {(old.id,)}


def test_what_is_removed_is_not_listed_as_unremoved() -> None:
    with judged_memory() as memory:
        memory.add("city=porto. The city is lovely in spring.", at=day(1))
        memory.add("city=faro", at=day(1))
        memory.add("city=lyon.", at=day(2))
        for view in VIEWS:
            result = memory.search("lovely city in spring", view=view)
            assert {shadow.is_whole for shadow in result.shadows} == {False, True}
            assert result.unremoved == ()


def test_a_reader_learns_which_memories_are_outdated() -> None:
    chat = ScriptedChat([{"answer": "porto"}] * 5)
    with judged_memory() as memory:
        memory.reader = LLMReader(chat)
        memory.add("city=porto", at=day(1))
        memory.add("city=lyon", at=day(2))
        memory.ask("Which city is it?")
        past = memory.ask("Which city was it before?")
        memory.ask_paths("Which city was it before?")
    present, about_past, *by_path = (user for _, user, _ in chat.requests)
    assert "porto" not in present
    assert "note=" not in present
    assert 'note="no longer true since 2026-01-03"' in about_past
    assert len(past.resolution.kept) == 2
    assert ["note=" in prompt for prompt in by_path] == [False, False, True]


def test_the_view_changes_nothing_for_the_baselines(memory: Memory) -> None:
    for number in (3, 1, 2):
        memory.add(f"city={number}", at=day(number))
    read = {
        view: [
            [item.chunk.text for item in answer.resolution.kept]
            for answer in memory.ask_paths("city", options=["1", "3"], view=view)
        ]
        for view in VIEWS
    }
    assert read["current"][:2] == read["past"][:2] == read["changes"][:2]
    assert read["changes"][1] == ["city=3", "city=2", "city=1"]
    assert [paths[2] for paths in read.values()] == [
        ["city=3"],
        read["past"][0],
        ["city=1", "city=2", "city=3"],
    ]


def test_the_prompts_of_the_paper_have_no_notes() -> None:
    chat = ScriptedChat([{"answer": "porto"}])
    with Memory(
        ":memory:",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        reader=LLMReader(chat),
        settings=Settings(strategy="paper"),
        require_qualified=False,
        clock=lambda: NOW,
    ) as memory:
        memory.add("city=porto", at=day(1))
        memory.add("city=lyon", at=day(2))
        memory.ask("city", view="past")
    assert "porto" in chat.requests[0][1]
    assert "note=" not in chat.requests[0][1]


def test_an_unknown_view_is_refused(memory: Memory) -> None:
    calls: list[Callable[..., object]] = [memory.search, memory.ask, memory.ask_paths]
    for call in calls:
        with pytest.raises(InvalidInputError, match="auto, current, past, changes"):
            call("x", view="future")


def test_the_command_line_takes_a_view(tmp_path: Path) -> None:
    path = tmp_path / "m.db"

    def gcmem(*arguments: str) -> str:
        command = [sys.executable, "-m", "gcmem", *arguments, "--path", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    gcmem("add", "I live in Porto.", "--at", "2026-01-01T00:00:00Z")
    gcmem("add", "I no longer live in Porto, I live in Lyon now.", "--at", "2026-02-01T00:00:00Z")
    found = json.loads(gcmem("search", "Where do I live?", "--view", "changes", "--json"))
    assert found["view"] == "changes"
    assert [item["chunk"]["text"][:4] for item in found["ranked"]] == ["I li", "I no"]
    assert "View: past" in gcmem("search", "Where did I live before?")
    assert "Read: 2 chunks" in gcmem("ask", "Where do I live?", "--view", "past")
