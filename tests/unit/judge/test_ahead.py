"""Judging ahead: which claims are compared, what is kept of it, and what stops it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from gcmem import deadline
from gcmem.errors import AbandonedError, InvalidInputError, ModelUnavailableError
from gcmem.judge.ahead import Judged, Judging
from gcmem.protocols import Reads, Ruling, Store
from gcmem.store import open_embedded
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.types import Chunk, Claim, Verdict
from tests.conftest import NOW, day
from tests.laws.test_judging import (
    ENCODER,
    EVERYTHING,
    RuleJudge,
    Said,
    append,
    chunk_of,
    filled,
    judging_of,
    remembering,
    rows_of,
    waiting,
)

CITIES = (Said("my city is porto.", 1), Said("my city is lyon.", 2))


@pytest.fixture
def store() -> Iterator[Store]:
    with filled() as store:
        yield store


def verdicts(store: Store) -> list[Verdict]:
    assert store.ledger is not None
    return store.ledger.verdicts([chunk.id for chunk in store.log.scan(EVERYTHING)])


def pairs(store: Store) -> list[tuple[str, str]]:
    return sorted((verdict.older, verdict.newer) for verdict in verdicts(store))


def test_a_verdict_says_who_judged_what_and_why(store: Store) -> None:
    append(store, [Said("hello there! my city is porto.", 1), CITIES[1]])
    judging = judging_of(store)
    assert judging.run() == Judged(judged=2, conflicts=1)
    (verdict,) = verdicts(store)
    assert verdict == Verdict(
        older="c0",
        older_span=(13, 30),
        newer="c1",
        newer_span=(0, 16),
        score=0.95,
        reason="my city is porto. / my city is lyon.",
        oracle=judging.id,
        by="model",
        recorded_at=NOW,
    )
    assert judging.id == "rule@1 on every-statement@1 (hash-32@1)"


def test_what_arrives_late_is_outdated_by_what_was_there_before(store: Store) -> None:
    append(store, [Said("my city is lyon.", 5)])
    judging_of(store).run()
    append(store, [Said("my city is porto.", 1)], first=1)
    judging_of(store).run()
    append(store, [Said("my city is nice.", 3)], first=2)
    judging_of(store).run()
    assert pairs(store) == [("c1", "c0"), ("c1", "c2"), ("c2", "c0")]


def test_only_rulings_from_the_floor_on_are_kept(store: Store) -> None:
    append(store, [*CITIES, Said("my city is hardly.", 3), Said("my diet is 1.", 4)])
    assert judging_of(store).run() == Judged(judged=4, conflicts=1)
    assert {(v.older, v.newer): v.score for v in verdicts(store)} == {
        ("c0", "c1"): 0.95,
        ("c0", "c2"): 0.2,
        ("c1", "c2"): 0.2,
    }


def test_the_words_of_different_users_are_not_compared(store: Store) -> None:
    append(store, [*CITIES, Said("my city is nice.", 3, "bob"), Said("my city is rome.", 4, None)])
    judge = RuleJudge()
    judging_of(store, judge).run()
    assert judge.ruled == [("c0#0-17", "c1#0-16")]


def test_equal_claims_are_not_compared(store: Store) -> None:
    append(store, [CITIES[0], Said(f"hello again dear. {CITIES[0].text}", 2)])
    judge = RuleJudge()
    judging_of(store, judge).run()
    assert judge.ruled == [("c0#0-17", "c1#0-17")]


def test_an_assistant_ends_nothing_that_a_user_said(store: Store) -> None:
    chunks = [
        replace(chunk_of(n, said), speaker=speaker)
        for n, (said, speaker) in enumerate(
            ((CITIES[0], "user"), (CITIES[1], "assistant"), (Said("my city is nice.", 3), "user"))
        )
    ]
    store.append(chunks, ENCODER.encode([c.text for c in chunks]), encoder_id=ENCODER.id)
    judging_of(store).run()
    assert pairs(store) == [("c0", "c2"), ("c1", "c2")]


def test_a_chunk_is_compared_with_nothing_of_its_own(store: Store) -> None:
    append(store, [Said("my city is porto. my city is lyon.", 1)])
    judge = RuleJudge()
    judging_of(store, judge).run()
    assert judge.ruled == []


@pytest.mark.parametrize(
    ("reads", "read"), [(Reads(1, -1.0), 1), (Reads(2, -1.0), 2), (Reads(9, 1.1), 0)]
)
def test_a_judge_says_how_many_claims_it_reads_and_how_similar(
    store: Store, reads: Reads, read: int
) -> None:
    append(
        store, [CITIES[0], Said("my diet is 1.", 1), Said("what a nice day it was.", 1), CITIES[1]]
    )
    judge = RuleJudge(reads=reads)
    judging_of(store, judge).judge_now([chunk_at(store, 4)], budget_s=60)
    assert len(judge.ruled) == read
    assert [older for older, _ in judge.ruled][:1] == ["c0#0-17"][:read]  # the closest


def chunk_at(store: Store, seq: int) -> Chunk:
    return next(chunk for chunk in store.log.scan(EVERYTHING) if chunk.seq == seq)


def test_claims_have_the_same_vectors_when_they_are_derived_and_when_they_are_read(
    store: Store,
) -> None:
    append(store, CITIES)
    judging = judging_of(store)
    chunks = list(store.log.scan(EVERYTHING))
    derived, stored = judging.claims_of(chunks), judging.claims_of(chunks)
    for seq, found in derived.items():
        for claim, again in zip(found, stored[seq], strict=True):
            assert claim.span == again.span
            assert np.array_equal(claim.vector, again.vector)


def test_progress_is_reported_page_by_page(store: Store) -> None:
    append(store, [CITIES[0]] * 8)
    seen: list[tuple[int, int]] = []
    with patch("gcmem.judge.ahead.CHUNKS_PER_PAGE", 3):
        assert judging_of(store).run(limit=7, progress=lambda *at: seen.append(at)).judged == 7
    assert seen == [(3, 7), (6, 7), (7, 7)]
    assert judging_of(store).pending() == 1


def test_a_run_ends_after_the_chunk_that_it_is_reading(store: Store) -> None:
    append(store, [replace(CITIES[n % 2], day=n % 7) for n in range(8)])
    judge = Stopping(after=3)
    judging = judging_of(store, judge)
    assert judging.run(goes_on=lambda: not judge.is_stopped).judged == 4
    assert [chunk.id for chunk in waiting(store, judging)] == ["c4", "c5", "c6", "c7"]
    judge.is_stopped = False
    assert judging.run().judged == 4
    with filled([replace(CITIES[n % 2], day=n % 7) for n in range(8)]) as other:
        judging_of(other).run()
        assert rows_of(store) == rows_of(other)


class Stopping(RuleJudge):
    """Is told to stop while it reads a chunk; the first chunk has nothing to be compared with."""

    def __init__(self, *, after: int) -> None:
        super().__init__()
        self.is_stopped = False
        self._after = after

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        self._after -= bool(pairs)
        self.is_stopped = self.is_stopped or self._after == 0
        return super().rule(pairs)


def test_who_has_no_right_to_judge_judges_nothing(store: Store) -> None:
    append(store, CITIES)
    assert store.ledger is not None
    store.ledger.lease("somebody else", seconds=60)
    assert judging_of(store).run(holder="me").judged == 0
    store.ledger.release("somebody else")
    assert judging_of(store).run(holder="me").judged == 2
    assert not store.ledger.lease("somebody else", seconds=60)
    judging_of(store).release("me")
    assert store.ledger.lease("somebody else", seconds=60)


class Greedy(RuleJudge):
    """Takes its time, and meanwhile somebody else tries to get the right to judge."""

    def __init__(self, store: Store, *, seconds: float) -> None:
        super().__init__()
        self.tries: list[bool] = []
        self._store = store
        self._seconds = seconds

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        time.sleep(self._seconds)
        assert self._store.ledger is not None
        self.tries.append(self._store.ledger.lease("somebody else", seconds=60))
        return super().rule(pairs)


def test_a_slow_judge_keeps_its_right_while_it_reads_one_page(store: Store) -> None:
    append(store, [replace(CITIES[n % 2], day=n) for n in range(6)])
    judge = Greedy(store, seconds=0.42)
    with patch("gcmem.judge.ahead.LEASE_S", 2.0):
        assert judging_of(store, judge).run(holder="me").judged == 6
    assert judge.tries == [False] * 6


def test_who_loses_the_right_keeps_what_is_judged_and_stops(store: Store) -> None:
    append(store, [replace(CITIES[n % 2], day=n) for n in range(6)])
    judge = Greedy(store, seconds=0.0)
    with patch("gcmem.judge.ahead.LEASE_S", 0.0):  # it ends at once
        judging = judging_of(store, judge)
        assert judging.run(holder="me").judged == 1
        assert len(waiting(store, judging)) == 5
    assert judge.tries == [True]


def test_two_threads_share_the_work(tmp_path: Path) -> None:
    class Slow(RuleJudge):
        def rule(
            self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = ""
        ) -> Sequence[Ruling]:
            time.sleep(0.005)
            return super().rule(pairs)

    judge = Slow()
    with (
        filled([replace(CITIES[n % 2], day=n) for n in range(40)], tmp_path / "m.db") as store,
        patch("gcmem.judge.ahead.CHUNKS_PER_PAGE", 4),
    ):
        judging = judging_of(store, judge)
        threads = [threading.Thread(target=judging.run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert judging.pending() == 0
        assert len(set(judge.ruled)) == len(judge.ruled) > 0


def test_a_search_judges_the_newest_first_and_says_what_is_left(store: Store) -> None:
    append(store, [Said(f"my city is {n}.", n) for n in range(4)])
    chunks = list(store.log.scan(EVERYTHING))

    class Slow(RuleJudge):
        """Looks at the time before each pair, as the shipped judge does."""

        seconds = 0.8

        def ruling(self, older: Claim, newer: Claim) -> Ruling:
            with deadline.step():
                time.sleep(self.seconds if newer.chunk.id == "c2" else 0.0)
            return super().ruling(older, newer)

    judge = Slow()
    judging = judging_of(store, judge)
    assert judging.judge_now(chunks, budget_s=0.5) == ["c2", "c1", "c0"]
    assert {chunk.id for chunk in waiting(store, judging)} == {"c0", "c1", "c2"}
    assert {newer.partition("#")[0] for _, newer in judge.ruled} == {"c3", "c2"}
    judge.seconds = 0.0
    assert judging.judge_now(chunks, budget_s=60) == []


def test_a_judge_that_never_looks_at_the_time_is_stopped_after_one_chunk(store: Store) -> None:
    append(store, [replace(CITIES[n % 2], day=n) for n in range(9)])
    judge = Greedy(store, seconds=0.2)
    left = judging_of(store, judge).judge_now(list(store.log.scan(EVERYTHING)), budget_s=0.1)
    assert left == [f"c{n}" for n in reversed(range(8))]
    assert len(judge.tries) == 1


def test_without_a_budget_nothing_is_judged_on_the_spot(store: Store) -> None:
    append(store, CITIES)
    judge = RuleJudge()
    judging = judging_of(store, judge)
    assert judging.judge_now(list(store.log.scan(EVERYTHING)), budget_s=0.0) == ["c1", "c0"]
    assert judge.ruled == []


def test_a_cancelled_search_is_not_taken_for_one_without_time(store: Store) -> None:
    append(store, CITIES)
    with deadline.within(deadline.Deadline(60)) as outer:
        outer.cancel(AbandonedError())
        with pytest.raises(AbandonedError):
            judging_of(store).judge_now(list(store.log.scan(EVERYTHING)), budget_s=60)


class Broken(RuleJudge):
    """A model that can't be reached."""

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        raise ModelUnavailableError("no answer")


def test_a_search_works_when_its_judge_fails(caplog: pytest.LogCaptureFixture) -> None:
    with remembering(judge=Broken()) as memory:
        for said in CITIES:
            memory.add(said.text, at=day(said.day), user_id="ana")
        found = memory.search("my city", user_id="ana")
        assert len(found.kept) == 2
        assert set(found.unjudged) == {item.chunk.id for item in found.kept}
        assert "no answer" in caplog.text
        with pytest.raises(ModelUnavailableError):
            memory.judge()


def test_a_search_works_when_its_judge_fails_to_read_a_doubt_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class NoQuestions(RuleJudge):
        def rule(
            self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = ""
        ) -> Sequence[Ruling]:
            if question:
                raise ModelUnavailableError("no answer")
            return super().rule(pairs)

    with remembering(judge=NoQuestions()) as memory:
        memory.add("my city is porto.", at=day(1), user_id="ana")
        memory.add("my city is perhaps.", at=day(2), user_id="ana")
        found = memory.search("my city", user_id="ana")
        assert len(found.doubtful) == 1
        assert found.unjudged == ()
        assert "no answer" in caplog.text


def test_a_store_that_can_only_be_read_is_searched(tmp_path: Path) -> None:
    with remembering(tmp_path / "m.db") as memory:
        memory.add("my city is porto.", at=day(1), user_id="ana")
        memory.add("my city is perhaps.", at=day(2), user_id="ana")
        memory.judge()
        memory.add("my diet is 1.", at=day(3), user_id="ana")
        assert isinstance(memory.store.log, SQLiteLog)
        with memory.store.log.reading() as connection:
            connection.execute("PRAGMA query_only = ON")
        found = memory.search("my city", user_id="ana")
        assert [memory.get(i).text for i in found.unjudged] == ["my diet is 1."]
        assert len(found.kept) == 3
        assert len(found.doubtful) == 1


class Careful(RuleJudge):
    """Is sure of what it doubts once it knows the question."""

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        rulings = super().rule(pairs)
        return [Ruling(0.95, "asked") if question and r.score >= 0.5 else r for r in rulings]


def test_a_doubt_is_read_again_with_the_question_and_that_is_kept() -> None:
    now = [NOW]
    judge = Careful()
    with remembering(judge=judge, clock=lambda: now[0]) as memory:
        (old,) = memory.add("my city is porto.", at=day(1), user_id="ana")
        memory.add("my city is perhaps.", at=day(2), user_id="ana")
        memory.judge()
        now[0] = NOW + timedelta(days=1)
        for _ in range(2):
            (shadow,) = memory.search("which city?", user_id="ana").shadows
        assert isinstance(shadow.conflict, Verdict)
        assert (shadow.conflict.reason, shadow.conflict.question) == ("asked", "which city?")
        assert shadow.conflict.recorded_at == now[0]
        assert len(judge.ruled) == 2  # once without a question, once with it
        assert memory.outcomes([old]).shadows == ()  # it holds for that question alone


def test_a_doubt_of_a_former_judge_is_read_again_by_the_present_one(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with remembering(path) as memory:
        memory.add("my city is porto.", at=day(1), user_id="ana")
        memory.add("my city is perhaps.", at=day(2), user_id="ana")
        memory.judge()

    class Unready(Careful):
        """Has no time for what is new."""

        def rule(
            self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = ""
        ) -> Sequence[Ruling]:
            if not question:
                raise ModelUnavailableError("busy")
            return super().rule(pairs, question=question)

    judge = Unready("careful@2")
    with remembering(path, judge=judge) as memory:
        for _ in range(2):
            (shadow,) = memory.search("which city?", user_id="ana").shadows
        assert shadow.conflict.oracle == memory.judging.id
        assert len(judge.ruled) == 1


def test_a_new_judge_judges_everything_anew_and_leaves_the_old_verdicts(store: Store) -> None:
    append(store, CITIES)
    judging_of(store).run()
    new = judging_of(store, RuleJudge("rule@2"))
    assert new.pending() == 2
    assert new.run().judged == 2
    assert [verdict.oracle.partition(" ")[0] for verdict in verdicts(store)] == ["rule@1", "rule@2"]
    assert judging_of(store).pending() == 0


def test_a_new_detector_derives_claims_anew(store: Store) -> None:
    append(store, [Said("my city is porto. my diet is 1.", 1)])
    judging = judging_of(store)
    judging.run()
    assert len(list(judging.claims(EVERYTHING))) == 2

    class Firsts:
        id = "first-statement@1"

        def find(self, chunks: Sequence[Chunk]) -> list[Any]:
            found = judging.claims_of(chunks)
            return [found[chunk.seq or 0][:1] for chunk in chunks]

    other = Judging(
        store, detector=Firsts(), judge=RuleJudge(), neighbours=lambda *_: [], clock=lambda: NOW
    )
    assert other.id != judging.id
    assert other.run().judged == 1
    assert [claim.text for claim in other.claims(EVERYTHING)] == ["my city is porto."]


def test_a_store_without_a_ledger_can_not_be_judged_ahead(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="can't keep verdicts"):
        judging_of(replace(store, ledger=None))


class Forgetful(RuleJudge):
    """While it reads, the older or the newer chunk is forgotten."""

    def __init__(self, store: Store, forgotten: str) -> None:
        super().__init__()
        self._store = store
        self._forgotten = forgotten

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        if pairs:
            self._store.delete([self._forgotten])
        return super().rule(pairs)


@pytest.mark.parametrize("forgotten", ["c0", "c1"])
@pytest.mark.parametrize("place", ["file", "memory"])
def test_what_is_forgotten_while_it_is_judged_leaves_nothing_behind(
    tmp_path: Path, forgotten: str, place: str
) -> None:
    path = tmp_path / "m.db" if place == "file" else ":memory:"
    with filled(CITIES, path) as store:
        judging = judging_of(store, Forgetful(store, forgotten))
        judging.run()
        assert not rows_of(store)
        assert [claim.chunk.id for claim in judging.claims(EVERYTHING)] == [
            "c1" if forgotten == "c0" else "c0"
        ]
        assert judging.pending() == 0


def test_what_is_forgotten_after_it_was_judged_leaves_nothing_behind() -> None:
    with remembering() as memory:
        ids = [
            memory.add(f"my city is {name}.", at=day(n), user_id="ana")[0].id
            for n, name in enumerate(("porto", "lyon", "perhaps"))
        ]
        memory.judge()
        memory.search("my city", user_id="ana")  # a verdict for this question
        memory.pin(ids[1], by="Ana")
        memory.confirm(ids[0], ids[1], by="Ana", reason="she left porto for lyon")
        memory.confirm(ids[1], ids[2], by="Ana")
        assert mentions(memory.store, ids[1]) > 5
        memory.forget(ids=[ids[1]])
        assert mentions(memory.store, ids[1]) == 0
        assert mentions(memory.store, "lyon") == 0
        assert mentions(memory.store, ids[0]) > 0


def mentions(store: Store, word: str) -> int:
    """Counts the cells of all tables in which a word occurs."""
    assert isinstance(store.log, SQLiteLog)
    with store.log.reading() as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        rows = [row for (name,) in tables for row in connection.execute(f"SELECT * FROM {name}")]
    return sum(word in str(cell) for row in rows for cell in row)


def test_claims_of_a_forgotten_chunk_are_gone_too(store: Store) -> None:
    append(store, CITIES)
    judging_of(store).run()
    assert isinstance(store.log, SQLiteLog)
    store.delete(["c0"])
    with store.log.reading() as connection:
        assert connection.execute("SELECT DISTINCT seq FROM claims").fetchall() == [(2,)]


def test_a_forgotten_chunk_does_not_hold_judging_up(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path / "m.db", encoder=ENCODER, stm_size=5)) as store:
        append(store, [replace(CITIES[n % 2], day=n) for n in range(6)])
        judging = judging_of(store)
        judging.run(limit=2)
        store.delete(["c1", "c2", "c5"])
        assert judging.pending() == 2
        assert judging.run().judged == 2
        assert judging.pending() == 0
