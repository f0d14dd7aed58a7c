"""A circuit breaker: after a failure, the server is tried once per interval, not at every call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Circuit:
    """Closed while the server answers; open after a failure, with one probe per interval."""

    def __init__(
        self, *, retry_after_s: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._retry_after_s = retry_after_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._probe_at: float | None = None

    def allows(self) -> bool:
        """Returns whether to call the server now; while open, one caller per interval may."""
        with self._lock:
            if self._probe_at is None:
                return True
            now = self._monotonic()
            if now < self._probe_at:
                return False
            self._probe_at = now + self._retry_after_s
            return True

    def failed(self) -> bool:
        """Opens the circuit; returns whether it was closed, so that an outage is reported once."""
        with self._lock:
            was_closed = self._probe_at is None
            self._probe_at = self._monotonic() + self._retry_after_s
            return was_closed

    def succeeded(self) -> None:
        """Closes the circuit."""
        with self._lock:
            self._probe_at = None
