"""Threads are shared fairly between callers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from gcmem.deadline import Deadline, check, within
from gcmem.errors import AbandonedError, DeadlineExceededError, OverloadedError, StoppingError
from gcmem.serve.http.workers import Probe, Workers


def workers(*, threads: int = 2, waiting: int = 100, waiting_per_caller: int = 50) -> Workers:
    return Workers(threads=threads, waiting=waiting, waiting_per_caller=waiting_per_caller)


def run(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), timeout=30))


async def settled() -> None:
    """Lets what can start, start."""
    for _ in range(20):
        await asyncio.sleep(0.005)


def test_one_caller_leaves_a_thread_to_the_others() -> None:
    async def scene() -> None:
        pool, gate = workers(threads=3), threading.Event()
        greedy = [asyncio.create_task(pool.run(gate.wait, caller="a")) for _ in range(10)]
        await settled()
        assert await pool.run(lambda: "answered", caller="b") == "answered"
        gate.set()
        assert all(await asyncio.gather(*greedy))
        pool.close()

    run(scene)


def test_callers_take_turns() -> None:
    async def scene() -> None:
        pool, gate = workers(threads=1), threading.Event()
        order: list[str] = []
        first = asyncio.create_task(pool.run(gate.wait, caller="a"))
        await settled()
        waiting = [
            asyncio.create_task(pool.run(partial(order.append, name), caller=name))
            for name in "aaaabbc"
        ]
        await settled()
        gate.set()
        await asyncio.gather(first, *waiting)
        assert "".join(order) == "abcabaa"
        pool.close()

    run(scene)


def test_a_caller_with_too_many_waiting_is_turned_away_and_no_other() -> None:
    async def scene() -> None:
        pool, gate = workers(threads=1, waiting=4, waiting_per_caller=2), threading.Event()
        mine = [asyncio.create_task(pool.run(gate.wait, caller="a")) for _ in range(4)]
        await settled()
        others = [asyncio.create_task(pool.run(gate.wait, caller=name)) for name in "bcd"]
        await settled()
        gate.set()
        done = await asyncio.gather(*mine, *others, return_exceptions=True)
        assert [type(one) for one in done] == [
            bool, bool, bool, OverloadedError, bool, bool, OverloadedError,
        ]  # fmt: skip
        assert "2 of your requests" in str(done[3])
        assert "4 requests" in str(done[6])
        pool.close()

    run(scene)


def test_what_waits_longer_than_its_deadline_is_never_begun() -> None:
    async def scene() -> None:
        pool, gate = workers(threads=1), threading.Event()
        begun = []
        first = asyncio.create_task(pool.run(gate.wait))
        await settled()
        with within(Deadline(0.2)):
            late = asyncio.create_task(pool.run(lambda: begun.append(1)))
        with pytest.raises(OverloadedError, match="too busy"):
            await late
        gate.set()
        await first
        await settled()
        assert begun == []
        pool.close()

    run(scene)


def test_what_waits_for_somebody_who_left_is_dropped() -> None:
    async def scene() -> None:
        pool, gate = workers(threads=1, waiting_per_caller=1), threading.Event()
        begun = []
        first = asyncio.create_task(pool.run(gate.wait))
        await settled()
        with within(Deadline(60)) as deadline:
            abandoned = asyncio.create_task(pool.run(lambda: begun.append(1)))
        await settled()
        deadline.cancel(AbandonedError("gone"))
        with pytest.raises(OverloadedError):
            await abandoned
        following = asyncio.create_task(pool.run(lambda: "in its place"))
        gate.set()
        assert await following == "in its place"
        await first
        assert begun == []
        pool.close()

    run(scene)


def test_running_work_sees_its_deadline() -> None:
    def busy() -> None:
        while True:
            check()
            time.sleep(0.01)

    async def scene() -> None:
        pool = workers()
        with within(Deadline(0.2)), pytest.raises(DeadlineExceededError):
            await pool.run(busy)
        pool.close()

    run(scene)


def test_a_stop_finishes_what_it_can_and_refuses_the_rest() -> None:
    async def scene() -> None:
        pool, gate = workers(threads=1), threading.Event()
        finished = []

        def stubborn() -> str:
            gate.wait(1)  # a write: it checks nothing
            finished.append(1)
            return "written"

        running = asyncio.create_task(pool.run(stubborn))
        await settled()
        queued = asyncio.create_task(pool.run(lambda: "never"))
        await settled()
        draining = asyncio.create_task(pool.drain(0.3))
        await asyncio.sleep(0)
        with pytest.raises(StoppingError):
            await pool.run(lambda: "too late")
        with pytest.raises(StoppingError):
            await queued
        assert await running == "written"
        await draining
        pool.close()
        assert finished == [1]

    run(scene)


def test_a_stop_works_the_queue_off_where_there_is_time() -> None:
    async def scene() -> None:
        pool = workers(threads=1)

        def slow() -> str:
            time.sleep(0.02)
            return "done"

        tasks = [asyncio.create_task(pool.run(slow)) for _ in range(10)]
        await asyncio.sleep(0)
        await pool.drain(20)
        assert await asyncio.gather(*tasks) == ["done"] * 10
        pool.close()

    run(scene)


def test_a_probe_runs_once_for_all_who_ask_and_does_not_wait_for_ever() -> None:
    async def scene() -> None:
        gate, calls = threading.Event(), []

        def stuck() -> None:
            calls.append(1)
            gate.wait(20)

        probe = Probe(stuck, timeout_s=0.2)
        asked = await asyncio.gather(*(probe.run() for _ in range(20)), return_exceptions=True)
        assert {type(one) for one in asked} == {OverloadedError}
        assert calls == [1]
        gate.set()
        await settled()
        await probe.run()
        assert calls == [1, 1]

    run(scene)
