"""Two machines write to one memory, and their clocks disagree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gcmem import Chunk, Memory, SearchResult, Settings
from gcmem.errors import InvalidInputError
from gcmem.resolve.skew import skew_between
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import ORIGIN_KEY
from tests.conftest import NOW, same_slot

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@dataclass
class Machines:
    """Writers on one store whose clocks run ahead of the true time by a fixed offset."""

    path: Path
    stack: ExitStack
    now: datetime = NOW
    settings: Settings = field(default_factory=Settings)

    def writer(self, *, ahead: timedelta = timedelta(0)) -> Memory:
        return self.stack.enter_context(
            Memory(
                self.path,
                encoder=HashEncoder(),
                oracle=RuleOracle(same_slot),
                require_qualified=False,
                settings=self.settings,
                clock=lambda: self.now + ahead,
            )
        )

    def passes(self, time: timedelta) -> None:
        self.now += time


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with ExitStack() as stack:
        yield Machines(tmp_path / "m.db", stack)


def texts(result: SearchResult) -> set[str]:
    return {item.chunk.text for item in result.kept}


def test_a_fast_clock_does_not_silently_decide_what_is_current(machines: Machines) -> None:
    right, fast = machines.writer(), machines.writer(ahead=HOUR)
    (first,) = fast.add("port=1", user_id="ana")
    machines.passes(10 * MINUTE)
    (second,) = right.add("port=2", user_id="ana")
    found = right.search("port", user_id="ana")
    assert texts(found) == {"port=1", "port=2"}
    assert found.shadows == ()
    (skew,) = found.skewed
    assert found.undecided == (skew.conflict,)
    assert {skew.conflict.older, skew.conflict.newer} == {first.id, second.id}
    assert skew.disagreement_s == 50 * 60
    (answer,) = right.ask_paths("port", user_id="ana", paths=["gcmem"])
    assert answer.resolution.skewed == found.skewed


def test_events_further_apart_than_the_clocks_are_still_ordered(machines: Machines) -> None:
    right, fast = machines.writer(), machines.writer(ahead=HOUR)
    fast.add("port=2", user_id="ana", at=machines.now)
    machines.passes(10 * MINUTE)
    right.add("port=1", user_id="ana", at=machines.now - timedelta(days=2))
    found = right.search("port", user_id="ana")
    assert texts(found) == {"port=2"}
    assert found.skewed == ()
    assert found.undecided == ()


def test_a_late_arrival_is_no_skew(machines: Machines) -> None:
    right, other = machines.writer(), machines.writer()
    right.add("port=2", user_id="ana")
    machines.passes(HOUR)
    other.add("port=1", user_id="ana", at=machines.now - timedelta(hours=3))
    found = right.search("port", user_id="ana")
    assert texts(found) == {"port=2"}
    assert found.skewed == ()


def test_of_two_clocks_within_the_bound_the_later_word_wins(machines: Machines) -> None:
    right, fast = machines.writer(), machines.writer(ahead=4 * MINUTE)
    fast.add("port=1", user_id="ana")
    right.add("port=2", user_id="ana")
    found = right.search("port", user_id="ana")
    assert texts(found) == {"port=2"}
    assert found.skewed == ()


def test_the_bound_can_be_taken_away_but_not_negative(machines: Machines) -> None:
    machines.settings = Settings(max_skew=None)
    right, fast = machines.writer(), machines.writer(ahead=HOUR)
    fast.add("port=1", user_id="ana")
    right.add("port=2", user_id="ana")
    found = right.search("port", user_id="ana")
    assert texts(found) == {"port=1"}
    assert found.skewed == ()
    with pytest.raises(InvalidInputError, match="max_skew"):
        Settings(max_skew=-HOUR)


def test_chunks_merged_in_from_another_log_prove_nothing_about_clocks() -> None:
    def chunk(seq: int, recorded_at: datetime, **metadata: str) -> Chunk:
        return Chunk(
            id=str(seq), text="", at=recorded_at, recorded_at=recorded_at, seq=seq,
            metadata=metadata,
        )  # fmt: skip

    native = chunk(1, NOW)
    merged = chunk(2, NOW - HOUR, **{ORIGIN_KEY: "a"})
    behind = chunk(3, NOW - 3 * HOUR, **{ORIGIN_KEY: "a"})
    assert skew_between(native, merged, max_skew=MINUTE) is None
    assert skew_between(merged, behind, max_skew=MINUTE) == 2 * HOUR
    assert skew_between(behind, merged, max_skew=MINUTE) == 2 * HOUR
