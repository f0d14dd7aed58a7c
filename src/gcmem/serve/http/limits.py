"""The limits of a server: sizes, times and rates."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from gcmem.errors import InvalidInputError, RateLimitedError

MAX_BUCKETS = 10_000
STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
MINIMUMS: dict[str, float] = {
    "body_bytes": 1,
    "body_timeout_s": 0,
    "depth": 4,
    "rate_per_s": 0,
    "burst": 1,
    "threads": 1,
    "waiting": 0,
    "waiting_per_caller": 0,
    "request_timeout_s": 0.1,
    "grace_s": 0,
    "resolve_pairs": 1,
    "resolve_bytes": 1,
    "stored_bytes": 1,
    "reply_bytes": 1024,
    "header_bytes": 1024,
    "headers": 1,
    "header_timeout_s": 0.1,
    "keep_alive_s": 0,
    "write_timeout_s": 0.1,
    "connections": 1,
    "idle_per_address": 1,
}
"""The smallest value of each limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a server. Those of single fields are in the API's schema."""

    body_bytes: int = 1_048_576
    """A longer body is refused while it is read, whatever its Content-Length said."""
    body_timeout_s: float = 10.0
    """A body that takes longer to arrive is refused."""
    depth: int = 32
    """How deep the JSON of a body may be nested."""
    rate_per_s: float = 100.0
    """Average requests per second of one key; 0 for no limit."""
    burst: int = 200
    """Requests that one key may make at once."""

    threads: int = 4
    """Requests that run at once; one key gets all threads but one."""
    waiting: int = 256
    """Requests that may wait for a thread; more are refused."""
    waiting_per_caller: int = 64
    """Requests of one key that may wait for a thread; more are refused."""
    request_timeout_s: float = 30.0
    """Seconds that a request may wait and run; then it is stopped."""
    grace_s: float = 20.0
    """Seconds that accepted requests get after the signal to stop."""

    resolve_pairs: int = 2016
    """Pairs of documents that one /v1/resolve may compare; 64 documents make 2,016."""
    resolve_bytes: int = 4 * 1_048_576
    """Bytes that one /v1/resolve may compare; a document counts once for each pair it is in."""
    stored_bytes: int = 8 * 1_048_576
    """Bytes of text and metadata that one request may store; every copy counts."""
    reply_bytes: int = 8 * 1_048_576
    """The largest reply; a page ends early, a search leaves out what does not fit."""

    header_bytes: int = 65_536
    """The longest head of a request: its path and all its headers."""
    headers: int = 100
    """The most headers of a request."""
    header_timeout_s: float = 10.0
    """How long the head of a request may take to arrive, from the start of the connection."""
    keep_alive_s: float = 30.0
    """How long a connection may stay open between two requests."""
    write_timeout_s: float = 30.0
    """How long a client may take to read more of its reply."""
    connections: int = 800
    """Open connections; most systems allow a process 1,024 files, and the store needs some."""
    idle_per_address: int = 200
    """Connections of one address that wait for their client to send something."""

    def __post_init__(self) -> None:
        for name, minimum in MINIMUMS.items():
            if getattr(self, name) < minimum:
                raise InvalidInputError(f"{name}={getattr(self, name)}: must be at least {minimum}")


class TokenBuckets:
    """One bucket per caller: it holds `burst` requests and refills at `rate_per_s`."""

    def __init__(self, limits: Limits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = limits.rate_per_s
        self._burst = float(limits.burst)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        """Takes one request from the caller's bucket; raises when it is empty."""
        if self._rate == 0:
            return
        now = self._clock()
        left, since = self._buckets.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1:
            self._buckets[caller] = (left, now)
            raise RateLimitedError(retry_after_s=(1 - left) / self._rate)
        if len(self._buckets) >= MAX_BUCKETS and caller not in self._buckets:
            self._buckets.clear()  # there are rarely this many keys
        self._buckets[caller] = (left - 1, now)


def is_too_deep(body: bytes, *, depth: int) -> bool:
    """Tells whether JSON is nested deeper than `depth`, or its brackets don't match.

    It removes strings, then innermost pairs of brackets, level by level. Parsing is what the limit
    must prevent, and a loop over bytes would be slow.
    """
    if body.count(b"[") + body.count(b"{") <= depth:
        return False
    brackets = STRING.sub(b"", body).translate(None, delete=NO_BRACKETS)
    for _ in range(depth):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not brackets:
            return False
    return True
