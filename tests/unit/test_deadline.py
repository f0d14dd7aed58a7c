from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from gcmem import Memory
from gcmem.deadline import Deadline, check, current, map_in_threads, within
from gcmem.encode import MiniLMEncoder
from gcmem.errors import AbandonedError, DeadlineExceededError
from gcmem.judge.local.classifier import LocalClassifier
from gcmem.protocols import Vectors
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import NOW, same_slot

TEXTS = [f"I moved to town {n} and work at office {n}." for n in range(200)]


def test_without_a_deadline_nothing_happens() -> None:
    assert current() is None
    check()


def test_work_that_takes_too_long_is_told_how_long_it_had() -> None:
    with within(Deadline(0.01)) as deadline:
        time.sleep(0.02)
        with pytest.raises(DeadlineExceededError, match=r"0\.01 s"):
            check()
        assert deadline.left_s == 0
    check()


def test_a_cancellation_gives_its_reason_once() -> None:
    called: list[str] = []
    deadline = Deadline(60)
    deadline.when_cancelled(lambda: called.append("before"))
    deadline.cancel(AbandonedError("the client has left"))
    deadline.cancel(AbandonedError("again"))
    deadline.when_cancelled(lambda: called.append("after"))
    assert called == ["before", "after"]
    with within(deadline), pytest.raises(AbandonedError, match="has left"):
        check()


def test_a_deadline_reaches_the_threads_of_a_pool() -> None:
    deadline = Deadline(60)
    done: list[int] = []

    def step(number: int) -> int:
        assert current() is deadline
        done.append(number)
        if number == 3:
            deadline.cancel(AbandonedError("enough"))
        return number

    with within(deadline), pytest.raises(AbandonedError):
        map_in_threads(step, range(1000), workers=2)
    assert len(done) < 20
    assert map_in_threads(lambda a, b: a + b, [1, 2], [3, 4], workers=2) == [4, 6]


@pytest.mark.parametrize("part", ["score", "glance", "stances", "answers", "encode"])
def test_the_models_stop_between_two_texts(part: str) -> None:
    classifier, encoder = LocalClassifier(), MiniLMEncoder()
    pairs = [(text, TEXTS[0]) for text in TEXTS[1:]]
    works: dict[str, Callable[[], object]] = {
        "score": lambda: classifier.score("Where do I live?", pairs),
        "glance": lambda: classifier.glance("Where do I live?", pairs),
        "stances": lambda: classifier.stances("Where do I live?", ["here", "there"], TEXTS),
        "answers": lambda: classifier.answers("Where do I live?", TEXTS),
        "encode": lambda: encoder.encode(TEXTS),
    }
    encoder.encode(["load"])
    classifier.score("load", [("the models", "both of them")])
    classifier.answers("load", ["it"])
    deadline = Deadline(60)
    timer = threading.Timer(0.05, deadline.cancel, args=[AbandonedError("the client has left")])
    timer.start()
    with within(deadline), pytest.raises(AbandonedError):
        works[part]()
    timer.join()


def test_an_add_whose_time_is_up_stores_nothing(tmp_path: Path) -> None:
    class Slow(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            time.sleep(0.05)
            return super().encode(texts)

    with Memory(
        tmp_path / "m.db",
        encoder=Slow(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        clock=lambda: NOW,
    ) as memory:
        with within(Deadline(0.02)), pytest.raises(DeadlineExceededError):
            memory.add(["one", "two"], at=NOW - timedelta(days=1))
        assert memory.get_all() == ()
