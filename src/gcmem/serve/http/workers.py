"""Worker threads that callers share in turn: a Memory is synchronous, the server is not."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from gcmem import deadline
from gcmem.deadline import Deadline
from gcmem.errors import GCMemError, OverloadedError, StoppingError

T = TypeVar("T")


class Workers:
    """Runs calls in threads. Callers take turns, so none waits for all calls of another.

    A caller may use all threads but one, and have `waiting_per_caller` calls waiting. Everything
    but the work itself happens on the event loop.
    """

    def __init__(self, *, threads: int, waiting: int, waiting_per_caller: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="gcmem")
        self._threads = threads
        self._share = max(1, threads - 1)
        self._most_waiting = waiting
        self._most_waiting_per_caller = waiting_per_caller
        self._queues: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._running: set[_Job] = set()
        self._running_of: Counter[str] = Counter()
        self._is_stopping = False

    @property
    def active_callers(self) -> int:
        """How many callers have a call running."""
        return len(self._running_of)

    async def run(self, work: Callable[[], T], *, caller: str = "") -> T:
        """Returns the result of `work`, which runs in the caller's context and deadline."""
        self.check_open()
        job = _Job(work, caller=caller)
        if self._is_free_for(caller):
            self._start(job)
        else:
            self._enqueue(job)
        try:
            return cast(T, await job.result)
        finally:
            self._drop(job)

    def check_open(self) -> None:
        """Raises while the server is being stopped."""
        if self._is_stopping:
            raise StoppingError("the server is being stopped; try again when it is back")

    async def drain(self, grace_s: float) -> None:
        """Accepts no more work. Calls not finished after `grace_s` are refused or stopped."""
        self._is_stopping = True
        ends_at = asyncio.get_running_loop().time() + grace_s
        while self._running and asyncio.get_running_loop().time() < ends_at:
            await asyncio.sleep(0.05)
        reason = StoppingError("the server was stopped before this was done; try again")
        for queue in list(self._queues.values()):
            for job in list(queue):
                self._refuse(job, reason)
        for job in self._running:
            if job.deadline is not None:
                job.deadline.cancel(reason)

    def close(self) -> None:
        """Waits for running calls, so that writes that have begun are finished."""
        self._pool.shutdown(wait=True)

    def _is_free_for(self, caller: str) -> bool:
        return len(self._running) < self._threads and self._running_of[caller] < self._share

    def _enqueue(self, job: _Job) -> None:
        queue = self._queues.get(job.caller, deque())
        waiting = sum(map(len, self._queues.values()))
        if len(queue) >= self._most_waiting_per_caller:
            raise OverloadedError(f"{len(queue)} of your requests are waiting already; try again")
        if waiting >= self._most_waiting:
            raise OverloadedError(f"{waiting} requests are waiting already; try again")
        queue.append(job)
        self._queues[job.caller] = queue
        if job.deadline is None:
            return
        job.timer = job.loop.call_later(job.deadline.left_s, self._give_up, job)

        def on_cancel() -> None:  # perhaps in another thread
            job.loop.call_soon_threadsafe(self._give_up, job)

        job.deadline.when_cancelled(on_cancel)

    def _give_up(self, job: _Job) -> None:
        """Refuses a waiting call whose time is up or whose client has left."""
        self._refuse(job, OverloadedError("the server was too busy to begin this in time"))

    def _refuse(self, job: _Job, reason: GCMemError) -> None:
        if self._drop(job) and not job.result.done():
            job.result.set_exception(reason)

    def _drop(self, job: _Job) -> bool:
        """Removes a call from the queue; tells whether it was there."""
        job.stop_timer()
        queue = self._queues.get(job.caller)
        if queue is None or job not in queue:
            return False
        queue.remove(job)
        if not queue:
            del self._queues[job.caller]
        return True

    def _start(self, job: _Job) -> None:
        job.stop_timer()
        self._running.add(job)
        self._running_of[job.caller] += 1
        self._pool.submit(job.run_in_thread, self._finished)

    def _finished(self, job: _Job) -> None:
        self._running.discard(job)
        self._running_of[job.caller] -= 1
        if not self._running_of[job.caller]:
            del self._running_of[job.caller]
        for caller in list(self._queues):
            if not self._is_free_for(caller):
                continue
            queue = self._queues[caller]
            following = queue.popleft()
            # To the end of the line: the others come first now.
            self._queues.move_to_end(caller)
            if not queue:
                del self._queues[caller]
            self._start(following)
            return


class _Job:
    """One call: waiting, running or done."""

    def __init__(self, work: Callable[[], Any], *, caller: str) -> None:
        self.caller = caller
        self.deadline: Deadline | None = deadline.current()
        self.loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self.loop.create_future()
        self.timer: asyncio.TimerHandle | None = None
        self._work = work
        self._context = contextvars.copy_context()

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def run_in_thread(self, finished: Callable[[_Job], None]) -> None:
        """Runs the work, in a thread."""
        value, error = None, None
        try:
            value = self._context.run(self._checked)
        except BaseException as raised:
            error = raised
        self.loop.call_soon_threadsafe(self._settle, value, error, finished)

    def _checked(self) -> Any:
        deadline.check()
        return self._work()

    def _settle(
        self, value: Any, error: BaseException | None, finished: Callable[[_Job], None]
    ) -> None:
        finished(self)
        if self.result.done():  # nobody waits for it any more
            return
        if error is None:
            self.result.set_result(value)
        else:
            self.result.set_exception(error)


class Probe:
    """Runs one check in a thread of its own, so that no request keeps it waiting.

    All who ask while a check runs share its result.
    """

    def __init__(self, check: Callable[[], None], *, timeout_s: float) -> None:
        self._check = check
        self._timeout_s = timeout_s
        self._under_way: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Raises the error of the check, or OverloadedError if it takes too long."""
        if self._under_way is None or self._under_way.done():
            self._under_way = _in_daemon_thread(self._check)
        try:
            async with asyncio.timeout(self._timeout_s):
                await asyncio.shield(self._under_way)
        except TimeoutError:
            raise OverloadedError(
                f"the store did not answer within {self._timeout_s:g} s; try again"
            ) from None


def _in_daemon_thread(work: Callable[[], None]) -> asyncio.Future[None]:
    """Runs `work` in a new thread that does not keep the process alive."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if result.cancelled():
            return
        if error is None:
            result.set_result(None)
        else:
            result.set_exception(error)
            result.exception()  # marks it as seen: perhaps nobody waits any more

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="gcmem-ready", daemon=True).start()
    return result
