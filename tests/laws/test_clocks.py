"""The laws of time at the door: no clock and no date lets an older word win over a newer one."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcmem import Chunk, Memory, SearchResult, Settings
from gcmem.errors import FutureTimeError
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import NOW, same_slot

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


class Clock:
    """The clock of a writer, which somebody sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def open_memory(path: Path | str, clock: Clock, **fields: object) -> Memory:
    return Memory(
        path,
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        settings=Settings(**fields),  # type: ignore[arg-type]
        clock=clock,
    )


def texts(result: SearchResult) -> list[str]:
    return sorted(item.chunk.text for item in result.kept)


def test_a_lie_dated_ahead_does_not_shadow_a_later_correction(tmp_path: Path) -> None:
    clock = Clock()
    with open_memory(tmp_path / "m.db", clock) as memory:
        memory.add("port=lie", at=clock.now + 23 * HOUR)
        clock.now += HOUR
        (correction,) = memory.add("port=true")
        found = memory.search("port")
        assert texts(found) == ["port=true"]
        assert found.shadows[0].witness.chunk == correction
        clock.now += 30 * HOUR  # also when the day of the lie has come
        assert texts(memory.search("port")) == ["port=true"]
        assert texts(memory.search("port", as_of=clock.now)) == ["port=true"]


def test_a_lie_dated_ahead_is_beaten_in_the_same_batch(tmp_path: Path) -> None:
    clock = Clock()
    with open_memory(tmp_path / "m.db", clock) as memory:
        ahead = {"content": "port=lie", "at": (clock.now + 5 * HOUR).isoformat()}
        memory.add([ahead, {"content": "port=true"}])
        assert texts(memory.search("port")) == ["port=true"]


def test_an_event_time_ahead_of_the_clock_is_stored_as_now(tmp_path: Path) -> None:
    clock = Clock()
    with open_memory(tmp_path / "m.db", clock) as memory:
        (ahead,) = memory.add("port=1", at=clock.now + HOUR)
        (past,) = memory.add("port=0", at=clock.now - HOUR)
        assert (ahead.at, past.at) == (clock.now, clock.now - HOUR)
        with pytest.raises(FutureTimeError):
            memory.add("port=9", at=clock.now + 25 * HOUR)


def test_who_asks_for_it_may_date_ahead(tmp_path: Path) -> None:
    clock = Clock()
    with open_memory(tmp_path / "m.db", clock, max_future=None) as memory:
        monday = clock.now + 72 * HOUR
        memory.add("office=A")
        memory.add("office=B", at=monday)
        assert texts(memory.search("office", as_of=clock.now)) == ["office=A"]
        clock.now += HOUR
        memory.add("office=A again")
        assert texts(memory.search("office", as_of=monday)) == ["office=B"]
        assert texts(memory.search("office", as_of=clock.now)) == ["office=A again"]


def test_a_clock_that_is_set_back_does_not_shadow_the_newest_fact(tmp_path: Path) -> None:
    clock = Clock()
    with open_memory(tmp_path / "m.db", clock) as memory:
        (old,) = memory.add("port=1")
        clock.now -= 4 * MINUTE
        (new,) = memory.add("port=2")
        assert texts(memory.search("port")) == ["port=2"]
        assert new.at is not None
        assert old.at is not None
        assert new.at >= old.at
    # Another process with the same wrong clock, and one with a slow one.
    with open_memory(tmp_path / "m.db", clock) as memory:
        clock.now += MINUTE
        memory.add("port=3")
        assert texts(memory.search("port")) == ["port=3"]


def test_a_clock_set_back_leaves_late_arrivals_in_their_place(tmp_path: Path) -> None:
    clock = Clock()
    with open_memory(tmp_path / "m.db", clock) as memory:
        memory.add("port=2")
        clock.now -= 4 * MINUTE
        (late,) = memory.add("port=1", at=clock.now - HOUR)
        assert late.at == clock.now - HOUR
        assert texts(memory.search("port")) == ["port=2"]


def test_the_times_of_one_user_do_not_show_in_those_of_another(tmp_path: Path) -> None:
    clock = Clock()
    with open_memory(tmp_path / "m.db", clock) as memory:
        memory.add("port=1", user_id="ana")
        clock.now -= 4 * MINUTE
        (bobs,) = memory.add("port=2", user_id="bob")
        assert (bobs.at, bobs.recorded_at) == (clock.now, clock.now)


steps = st.lists(
    st.tuples(
        st.integers(-2, 2),  # minutes by which this writer's clock is off
        st.none() | st.integers(-600, 1439),  # minutes from its now to the event, if it says one
    ),
    min_size=1,
    max_size=8,
)


@given(steps)
@settings(max_examples=60)
def test_what_is_said_now_wins_over_all_that_was_recorded_before(
    said: list[tuple[int, int | None]],
) -> None:
    clock, true_time = Clock(), NOW
    with open_memory(":memory:", clock) as memory:
        stored: list[Chunk] = []
        for n, (off, event) in enumerate(said):
            true_time += timedelta(seconds=1)
            clock.now = true_time + off * MINUTE
            at = None if event is None else clock.now + event * MINUTE
            stored += memory.add(f"port={n}", at=at)
        for n, (_, event) in enumerate(said):
            if event is None:
                assert all(older.precedes(stored[n]) for older in stored[:n])
        for chunk in stored:
            assert chunk.at is not None
            assert chunk.recorded_at is not None
            assert chunk.at <= chunk.recorded_at
        (winner,) = memory.search("port").kept
        last_now = max((n for n, (_, event) in enumerate(said) if event is None), default=0)
        assert not winner.chunk.precedes(stored[last_now])
