"""A cancelled call: a thread can't be stopped, so the caller is told when it has ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gcmem import Memory
from gcmem.protocols import Vectors
from gcmem.testing import HashEncoder

WAIT_S = 20


class HeldEncoder(HashEncoder):
    """Encodes only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.begun.set()
        assert self.let_go.wait(WAIT_S)
        return super().encode(texts)


async def until(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.001)


def test_a_cancelled_add_is_settled_when_the_cancellation_is_seen(tmp_path: Path) -> None:
    encoder = HeldEncoder()

    async def run(memory: Memory) -> int:
        task = asyncio.create_task(memory.aadd("I drink tea."))
        await until(encoder.begun)
        task.cancel()
        await asyncio.sleep(0.05)
        task.cancel()  # insisting does not help: the thread still runs
        await asyncio.sleep(0.05)
        assert not task.done()
        encoder.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(memory.get_all())

    with Memory(tmp_path / "m.db", encoder=encoder) as memory:
        assert asyncio.run(run(memory)) == 1
        assert len(memory.get_all()) == 1  # nothing came later


def test_a_timeout_on_an_add_leaves_it_settled_too(tmp_path: Path) -> None:
    encoder = HeldEncoder()

    async def run(memory: Memory) -> int:
        threading.Timer(0.3, encoder.let_go.set).start()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await memory.aadd("I drink tea.")
        return len(memory.get_all())

    with Memory(tmp_path / "m.db", encoder=encoder) as memory:
        assert asyncio.run(run(memory)) == 1


def test_an_add_that_is_cancelled_before_it_begins_stores_nothing(tmp_path: Path) -> None:
    async def run(memory: Memory) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        blocked = threading.Event()
        other = asyncio.create_task(asyncio.to_thread(blocked.wait, WAIT_S))
        task = asyncio.create_task(memory.aadd("I drink tea."))
        await asyncio.sleep(0.05)  # it waits for the only thread
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, WAIT_S)
        blocked.set()
        await other
        await asyncio.to_thread(lambda: None)  # whatever was queued has run by now

    with Memory(tmp_path / "m.db", encoder=HashEncoder()) as memory:
        asyncio.run(run(memory))
        assert memory.get_all() == ()


def test_a_cancelled_search_returns_at_once(tmp_path: Path) -> None:
    encoder = HeldEncoder()

    async def run(memory: Memory) -> None:
        task = asyncio.create_task(memory.asearch("tea"))
        await until(encoder.begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        encoder.let_go.set()

    with Memory(tmp_path / "m.db", encoder=encoder) as memory:
        asyncio.run(run(memory))


def test_an_error_in_the_thread_is_raised_as_it_is(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", encoder=HashEncoder()) as memory:
        with pytest.raises(ValueError, match="empty"):
            asyncio.run(memory.aadd(""))
        (chunk,) = asyncio.run(memory.aadd("I drink tea."))
        assert memory.get(chunk.id) == chunk
    assert "stored" in (Memory.aadd.__doc__ or "")
