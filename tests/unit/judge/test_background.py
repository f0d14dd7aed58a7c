"""Judging in the background: nobody waits for it, and it neither dies nor keeps anything alive."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from gcmem import Memory, deadline
from gcmem.judge.background import BackgroundJudge
from gcmem.protocols import Ruling
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.types import Claim
from tests.conftest import day
from tests.laws.test_judging import (
    RuleJudge,
    Said,
    filled,
    judging_of,
    remembering,
    rows_of,
)

LONG_S = 30.0
"""Longer than anything here takes, also on a machine that does other things."""


def eventually(condition: Callable[[], bool]) -> bool:
    ends_at = time.monotonic() + LONG_S
    while not condition() and time.monotonic() < ends_at:
        time.sleep(0.005)
    return condition()


def in_background(path: Path | str = ":memory:", **choices: Any) -> Any:
    settings = {"judge": "background", "judge_budget_ms": 0, **choices.pop("settings", {})}
    return remembering(path, settings=settings, **choices)


def tell(memory: Memory, *texts: str, first: int = 0) -> None:
    for number, text in enumerate(texts, first):
        memory.add(text, user_id="ana", at=day(number))


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "gcmem-judge"]


class Waiting(RuleJudge):
    """Waits inside each ruling until it is told to go on."""

    def __init__(self, id: str = "waiting@1") -> None:
        super().__init__(id)
        self.go_on = threading.Event()
        self.is_reading = threading.Event()

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        if pairs:
            self.is_reading.set()
            assert self.go_on.wait(LONG_S)
        return super().rule(pairs)


@contextmanager
def let_go(judge: Waiting) -> Iterator[None]:
    try:
        yield
    finally:
        judge.go_on.set()


def test_what_is_added_is_judged_without_being_asked() -> None:
    with in_background() as memory:
        tell(memory, "my city is porto.", "my city is lyon.")
        assert eventually(lambda: memory.pending() == 0)
        found = memory.search("my city", user_id="ana")
        assert [item.chunk.text for item in found.kept] == ["my city is lyon."]
        assert found.unjudged == ()


def test_neither_an_add_nor_a_search_waits_for_it() -> None:
    judge = Waiting()
    with in_background(judge=judge) as memory, let_go(judge):
        tell(memory, "my city is porto.", "my city is lyon.")
        assert judge.is_reading.wait(LONG_S)
        # It is in the middle of a ruling, and stays there until the end of this test.
        tell(memory, *(f"my diet is {n}." for n in range(30)), first=2)
        found = memory.search("my city", user_id="ana", k=50)
        assert len(found.kept) == 32
        assert (
            len(found.unjudged) == memory.pending() >= 31
        )  # the first has nothing to be compared with
        memory.forget(ids=[found.kept[0].chunk.id])
        assert not judge.go_on.is_set()


def test_nothing_runs_until_there_is_something_to_judge() -> None:
    before = len(threads())
    with in_background() as memory:
        assert len(threads()) == before
        tell(memory, "my city is porto.")
        assert len(threads()) == before + 1
        assert all(thread.daemon for thread in threads())
    assert len(threads()) == before
    with remembering() as memory:
        tell(memory, "my city is porto.")
        assert len(threads()) == before


class Slow(RuleJudge):
    def __init__(self, *, seconds: float, id: str = "slow@1") -> None:
        super().__init__(id)
        self.seconds = seconds

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        time.sleep(self.seconds)
        return super().rule(pairs)


def test_closing_stops_it_and_the_rest_is_judged_when_the_store_is_opened_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    texts = [f"my city is {n}." for n in range(12)]
    before = len(threads())
    judge = Slow(seconds=0.3)
    with in_background(path, judge=judge) as memory:
        tell(memory, *texts)
        assert eventually(lambda: len(judge.ruled) > 0)
    assert len(threads()) == before
    with remembering(path, judge=Slow(seconds=0.0)) as memory:
        left = memory.pending()
        assert 0 < left < 12  # it kept what it had finished
    with in_background(path, judge=Slow(seconds=0.0)) as memory:
        # At once, since the closed one has given its right back; otherwise it would take a minute.
        assert eventually(lambda: memory.pending() == 0)
        found = memory.search("my city", user_id="ana")
        assert [item.chunk.text for item in found.kept] == ["my city is 11."]


def test_closing_waits_a_while_for_a_judge_that_is_stuck_and_no_longer(tmp_path: Path) -> None:
    judge = Waiting()
    with let_go(judge), patch("gcmem.judge.background.STOP_WAIT_S", 0.1):
        with in_background(tmp_path / "m.db", judge=judge) as memory:
            tell(memory, "my city is porto.", "my city is lyon.")
            assert judge.is_reading.wait(LONG_S)
            (thread,) = threads()
        assert thread.is_alive()
        judge.go_on.set()
        thread.join(LONG_S)  # it finds the store closed, and ends without a word
        assert not thread.is_alive()


def test_who_is_woken_after_it_was_stopped_does_nothing() -> None:
    with filled([Said("my city is porto.", 1)]) as store:
        background = BackgroundJudge(judging_of(store))
        background.stop()
        background.wake()
        background.stop()
        assert threads() == []


def break_marks(memory: Memory) -> None:
    """Makes the store fail when marks are written, as a full disk would."""
    assert isinstance(memory.store.log, SQLiteLog)
    with memory.store.log.reading() as connection:
        connection.execute(
            "CREATE TRIGGER broken BEFORE INSERT ON judged "
            "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )


def mend(memory: Memory) -> None:
    assert isinstance(memory.store.log, SQLiteLog)
    with memory.store.log.reading() as connection:
        connection.execute("DROP TRIGGER broken")


def test_a_failure_of_the_store_is_logged_and_tried_again_with_the_next_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with in_background() as memory:
        break_marks(memory)
        tell(memory, "my city is porto.")
        assert eventually(lambda: "the disk is full" in caplog.text)
        assert "to be tried again" in caplog.text
        assert memory.pending() == 1
        mend(memory)
        tell(memory, "my city is lyon.", first=1)
        assert eventually(lambda: memory.pending() == 0)
        assert sum(rows_of(memory.store).values()) == 1


def test_a_failure_of_the_store_is_tried_again_after_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with patch("gcmem.judge.background.LEASE_S", 0.05), in_background() as memory:
        break_marks(memory)
        tell(memory, "my city is porto.")
        assert eventually(lambda: len(caplog.records) > 1)
        mend(memory)
        assert eventually(lambda: memory.pending() == 0)


def test_a_failure_of_a_judge_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(RuleJudge):
        is_broken = True

        def rule(
            self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = ""
        ) -> Sequence[Ruling]:
            if self.is_broken:
                raise ZeroDivisionError("a bug in a judge")
            return super().rule(pairs)

    judge = Faulty()
    with in_background(judge=judge) as memory:
        tell(memory, "my city is porto.", "my city is lyon.")
        assert eventually(lambda: "a bug in a judge" in caplog.text)
        judge.is_broken = False
        tell(memory, "my city is nice.", first=2)
        assert eventually(lambda: memory.pending() == 0)


def test_a_backlog_is_judged_when_a_store_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with remembering(path) as memory:
        tell(memory, *(f"my city is {n}." for n in range(20)))
        assert memory.pending() == 20
    with in_background(path) as memory:
        assert eventually(lambda: memory.pending() == 0)


def test_what_another_process_adds_meanwhile_is_judged_too(tmp_path: Path) -> None:
    judge = Waiting()
    with in_background(tmp_path / "m.db", judge=judge) as memory, let_go(judge):
        tell(memory, "my city is porto.", "my city is lyon.")
        assert judge.is_reading.wait(LONG_S)
        with filled([Said("my city is nice.", 3)], tmp_path / "m.db"):  # wakes nobody
            judge.go_on.set()
            assert eventually(lambda: memory.pending() == 0)  # much sooner than after a minute


def test_two_memories_of_one_file_judge_everything_once(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    judge = RuleJudge()
    with (
        patch("gcmem.judge.background.LEASE_S", 0.05),  # who may not judge looks again soon
        in_background(path, judge=judge) as one,
        in_background(path, judge=judge) as other,
    ):
        for number in range(20):
            tell((one, other)[number % 2], f"my city is {number}.", first=number)
        assert eventually(lambda: one.pending() == other.pending() == 0)
        assert sum(rows_of(one.store).values()) == 20 * 19 / 2
    assert len(judge.ruled) == len(set(judge.ruled)) == 20 * 19 / 2


@pytest.mark.parametrize("looks_at_the_time", [True, False])
def test_a_search_takes_no_longer_than_its_budget(looks_at_the_time: bool) -> None:
    class Patient(RuleJudge):
        def rule(
            self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = ""
        ) -> Sequence[Ruling]:
            for _ in pairs:
                if looks_at_the_time:
                    deadline.check()
                time.sleep(0.02)
            return super().rule(pairs)

    # All of them would take 10 s, and one of them less than half a second.
    with remembering(judge=Patient(), settings={"judge_budget_ms": 100}) as memory:
        tell(memory, *(f"my city is {n}." for n in range(30)))
        started = time.monotonic()
        found = memory.search("my city", user_id="ana", k=50)
        assert time.monotonic() - started < 4
        assert len(found.kept) == len(found.candidates) - len(found.shadows)
        # Who does not look at the time has finished one chunk.
        assert len(found.unjudged) == memory.pending() == (30 if looks_at_the_time else 29)


def test_a_doubt_is_not_read_again_beyond_the_budget() -> None:
    class Slowly(RuleJudge):
        asked = 0

        def rule(
            self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = ""
        ) -> Sequence[Ruling]:
            if question:
                self.asked += 1
                time.sleep(0.7)
            return super().rule(pairs)

    judge = Slowly()
    with remembering(judge=judge, settings={"judge_budget_ms": 500}) as memory:
        for number in range(10):
            tell(memory, f"my city is {number}.", "my city is perhaps.", first=2 * number)
        memory.judge()
        found = memory.search("my city", user_id="ana", k=50)
        assert judge.asked == 1
        assert found.unjudged == ()
        assert found.doubtful


def test_a_former_judge_serves_while_a_new_one_reads_everything_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with remembering(path) as memory:
        tell(memory, "my city is porto.", "my city is lyon.", "my diet is 1.", "my diet is 2.")
        memory.judge()
        old = memory.judging.id

    class Milder(Waiting):
        """Sees no conflict between diets."""

        def ruling(self, older: Claim, newer: Claim) -> Ruling:
            ruling = super().ruling(older, newer)
            return Ruling(0.0) if "diet" in newer.text else ruling

    judge = Milder("milder@2")
    with in_background(path, judge=judge) as memory, let_go(judge):
        assert judge.is_reading.wait(LONG_S)
        found = memory.search("my city and my diet", user_id="ana")
        assert {s.conflict.oracle for s in found.shadows} == {old}
        assert sorted(item.chunk.text for item in found.kept) == [
            "my city is lyon.",
            "my diet is 2.",
        ]
        assert len(found.unjudged) == 4
        judge.go_on.set()
        assert eventually(lambda: memory.pending() == 0)
        found = memory.search("my city and my diet", user_id="ana")
        assert {s.conflict.oracle for s in found.shadows} == {memory.judging.id}
        assert [s.candidate.chunk.text for s in found.shadows] == ["my city is porto."]
        assert len(found.kept) == 3


def test_a_thread_that_judges_is_polite() -> None:
    if not hasattr(os, "getpriority"):
        pytest.skip("this system has no priorities")
    judge = Waiting()
    with in_background(judge=judge) as memory, let_go(judge):
        tell(memory, "my city is porto.", "my city is lyon.")
        assert judge.is_reading.wait(LONG_S)
        (thread,) = threads()
        assert thread.native_id is not None
        mine = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        assert os.getpriority(os.PRIO_PROCESS, thread.native_id) == min(19, mine + 10) or mine >= 10
