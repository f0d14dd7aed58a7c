"""Every caller that judges gives the same outcome on the same set: they share one resolver."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from gcmem import Memory, Settings
from gcmem.integrations.transcript import superseded
from gcmem.judge.labelled import LabelledSet
from gcmem.judge.qualification import qualify_sets
from gcmem.serve.http.timeline import page_of
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import TRUSTED, UNTRUSTED, ChunkFilter
from tests.conftest import NOW, day, same_slot

HOUR = timedelta(hours=1)
QUESTION = "port"


def opened(path: Path, *, ahead: timedelta = timedelta(0)) -> Memory:
    return Memory(
        path,
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        settings=Settings(respect_trust=True),
        require_qualified=False,
        clock=lambda: NOW + ahead,
    )


def plain(path: Path) -> None:
    with opened(path) as memory:
        memory.add("port=1", at=NOW - HOUR)
        memory.add("port=2", at=NOW)


def skewed(path: Path) -> None:
    """The first writer's clock is an hour ahead, so nobody knows which came first."""
    with opened(path, ahead=HOUR) as fast, opened(path) as right:
        fast.add("port=1")
        right.add("port=2")


def outranked(path: Path) -> None:
    """What is newer is trusted less."""
    with opened(path) as memory:
        memory.add("port=1", at=NOW - HOUR, trust=TRUSTED)
        memory.add("port=2", at=NOW, trust=UNTRUSTED)


def by_search(memory: Memory) -> set[str]:
    return {s.candidate.chunk.text for s in memory.search(QUESTION).shadows}


def by_ask(memory: Memory) -> set[str]:
    resolution = memory.ask(QUESTION, options=["1", "2"]).resolution
    return {s.candidate.chunk.text for s in resolution.shadows}


def by_resolve(memory: Memory) -> set[str]:
    return {s.candidate.chunk.text for s in memory.resolve(memory.candidates(QUESTION)).shadows}


def by_judging(memory: Memory) -> set[str]:
    memory.judge()
    page = page_of(memory, ChunkFilter(), newest_first=True, limit=10, before=None)
    known = page.known.witnesses
    outdated = {chunk_id for chunk_id, witness in known.items() if witness.outcome == "outdated"}
    return {chunk.text for chunk in page.chunks if chunk.id in outdated}


def by_transcript(memory: Memory) -> set[str]:
    shadows = superseded(memory.history(), resolver=memory.read_resolver)
    return {s.candidate.chunk.text for s in shadows.values()}


def by_qualification(memory: Memory) -> set[str]:
    candidates = memory.candidates(QUESTION)
    gone = set()
    for item in candidates:
        labelled = LabelledSet(
            candidates=candidates,
            conflicts=tuple((item.chunk.id, c.chunk.id) for c in candidates if c is not item),
            must_keep=(item.chunk.id,),
        )
        if qualify_sets(memory.read_resolver, [labelled]).kept == 0:
            gone.add(item.chunk.text)
    return gone


CALLERS = [by_search, by_ask, by_resolve, by_judging, by_transcript, by_qualification]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    ("written", "gone"), [(plain, {"port=1"}), (skewed, set()), (outranked, set())]
)
def test_every_caller_gives_the_same_outcome(
    tmp_path: Path,
    written: Callable[[Path], None],
    gone: set[str],
    caller: Callable[[Memory], set[str]],
) -> None:
    written(tmp_path / "m.db")
    with opened(tmp_path / "m.db") as memory:
        assert caller(memory) == gone


def test_a_persons_word_outranks_an_oracle_that_is_asked_at_read_time(memory: Memory) -> None:
    older, newer = (memory.add(text, at=day(n))[0].id for n, text in enumerate(("x=1", "x=2")))
    assert by_search(memory) == {"x=1"}
    memory.reject(older, newer)
    assert by_search(memory) == set()
    memory.undo(older, newer)
    assert by_search(memory) == {"x=1"}
    memory.pin(older)
    assert by_search(memory) == set()
    (other,) = memory.add("y=3", at=day(3))
    memory.unpin(older)
    memory.confirm(newer, other.id)
    assert by_search(memory) == {"x=1", "x=2"}
