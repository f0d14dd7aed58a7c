"""Judges in the background: a thread that never blocks a caller or keeps the process alive."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import platform
import threading
import time
import uuid

from gcmem.errors import GCMemError
from gcmem.judge.ahead import LEASE_S, Judging

logger = logging.getLogger(__name__)

NICENESS = 10
STOP_WAIT_S = 5.0
PAUSE_S = 0.05
LONGEST_WAIT_S = 2.0


class BackgroundJudge:
    """Judges what waits whenever it is woken; starts its thread the first time.

    Of several processes with one store, one judges at a time. What is left when the process ends
    is judged by the next one that is woken.
    """

    def __init__(self, judging: Judging) -> None:
        self._judging = judging
        self._holder = f"{platform.node()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Says that there is something to judge; returns at once."""
        self._woken.set()
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="gcmem-judge", daemon=True)
                self._thread.start()
                # A thread inside a model must not see the interpreter go away.
                atexit.register(self.stop)

    def stop(self) -> None:
        """Stops the thread after the chunk that it is reading; what is left is judged later."""
        self._stopping.set()
        self._woken.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            atexit.unregister(self.stop)
            if thread is not threading.current_thread():
                thread.join(STOP_WAIT_S)

    def _run(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # not on every system
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        waits_s: float | None = None
        while True:
            self._woken.wait(waits_s)
            self._wait_for_a_pause()
            if self._stopping.is_set():
                break
            waits_s = self._judge()
        if waits_s is not None:  # otherwise another process would wait until the right has ended
            with contextlib.suppress(Exception):  # the store may be closed already
                self._judging.release(self._holder)

    def _goes_on(self) -> bool:
        self._wait_for_a_pause()
        return not self._stopping.is_set()

    def _wait_for_a_pause(self) -> None:
        """Waits until nothing has been added for a moment: judging would slow the writer down."""
        ends_at = time.monotonic() + LONGEST_WAIT_S
        while self._woken.is_set() and time.monotonic() < ends_at and not self._stopping.is_set():
            self._woken.clear()
            self._stopping.wait(PAUSE_S)
        self._woken.clear()

    def _judge(self) -> float | None:
        """Judges what waits; returns when to look again, None if there is nothing left."""
        try:
            found = self._judging.run(holder=self._holder, goes_on=self._goes_on)
            if not self._judging.pending():
                self._judging.release(self._holder)
                return None
            # More was added, or somebody else is judging: then look when its right has ended.
            return 0.0 if found.judged else LEASE_S
        except Exception as error:  # of a judge too: the thread must outlive it
            if not self._stopping.is_set():
                logger.warning(
                    "judging in the background failed, to be tried again: %s",
                    error,
                    exc_info=not isinstance(error, GCMemError),
                )
            return LEASE_S
