"""Reuses computed values within one call, and between calls for the same scope.

Nothing is shared between scopes: a caller could tell from the response time whether a value was
computed before. So results for texts are reused only within one call, and cached values only by
calls for exactly the same scope.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gcmem.protocols import Encoder, QueryEncoder, Vectors
from gcmem.types import Scope

P = ParamSpec("P")
R = TypeVar("R")

CAPACITY = 20_000
"""Maximum weight of the cache for all scopes together; a vector weighs 1."""


class ScopedCache:
    """Caches values per scope and drops the least recently used; safe to use from several threads.

    Keys are stored as hashes, so no question stays in memory as text.
    """

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[tuple[Scope, bytes], tuple[Any, int]] = OrderedDict()
        self._weight = 0
        self._calls: set[Call] = set()
        self._lock = threading.Lock()

    def forget(self, scopes: Iterable[Scope]) -> None:
        """Clears the cache of every scope that may share chunks with one of these.

        Running calls in such a scope cache nothing more: they may have read a deleted chunk.
        """
        erased = set(scopes)
        with self._lock:
            for call in self._calls:
                if _overlaps(call.scope, erased):
                    call.keeps = False
            stale = {s for s in {scope for scope, _ in self._kept} if _overlaps(s, erased)}
            for place in [place for place in self._kept if place[0] in stale]:
                self._weight -= self._kept.pop(place)[1]

    def _begin(self, call: Call) -> None:
        with self._lock:
            self._calls.add(call)

    def _end(self, call: Call) -> None:
        with self._lock:
            self._calls.discard(call)

    def _get(self, call: Call, key: Hashable) -> Any:
        place = (call.scope, _digest(key))
        with self._lock:
            if place not in self._kept:
                return None
            self._kept.move_to_end(place)
            return self._kept[place][0]

    def _put(self, call: Call, key: Hashable, value: Any, weight: int) -> None:
        place = (call.scope, _digest(key))
        with self._lock:
            if not call.keeps:
                return
            _, before = self._kept.pop(place, (None, 0))
            self._kept[place] = (value, weight)
            self._weight += weight - before
            while self._weight > self._capacity:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._weight -= dropped


class Call:
    """One call of a `Memory`, or one resolution of documents."""

    def __init__(self, cache: ScopedCache | None = None, scope: Scope | None = None) -> None:
        self._cache = cache
        self.scope = scope or Scope()
        self.keeps = cache is not None
        """Whether `put` saves values for later calls."""
        self.computed: dict[Hashable, Any] = {}
        """Values computed in this call; dropped when it ends."""

    def get(self, key: Hashable) -> Any:
        """Returns the value that an earlier call of the same scope saved, or None."""
        return None if self._cache is None else self._cache._get(self, key)

    def put(self, key: Hashable, value: Any, *, weight: int = 1) -> None:
        """Saves a value for later calls of the same scope; `weight` is its size in vectors."""
        if self._cache is not None:
            self._cache._put(self, key, value, weight)

    def vectors(
        self,
        keys: Sequence[Hashable],
        texts: Sequence[str],
        encoder: Encoder,
        *,
        queries: bool = False,
    ) -> Vectors:
        """Returns one vector per text; vectors cached under their keys are not computed again.

        `queries` says that the texts are questions.
        """
        encode = encoder.encode
        if queries and isinstance(encoder, QueryEncoder):
            encode = encoder.encode_queries
        known = [self.get(key) for key in keys]
        missing = [n for n, vector in enumerate(known) if vector is None]
        encoded = encode([texts[n] for n in missing]) if missing else ()
        for n, vector in zip(missing, encoded, strict=True):
            known[n] = vector
            self.put(keys[n], vector)
        return np.stack(known)


_current: ContextVar[Call | None] = ContextVar("gcmem_call", default=None)


@contextmanager
def one_call(cache: ScopedCache | None = None, scope: Scope | None = None) -> Iterator[Call]:
    """Starts a call: values are reused within it, and saved for later ones only in `cache`."""
    call = Call(cache, scope)
    token = _current.set(call)
    if cache is not None:
        cache._begin(call)
    try:
        yield call
    finally:
        _current.reset(token)
        if cache is not None:
            cache._end(call)


def current_call() -> Call:
    """Returns the current call; outside of one, a new call that nothing else shares."""
    return _current.get() or Call()


def as_one_call(function: Callable[P, R]) -> Callable[P, R]:
    """Runs a function as a call of its own, unless it is already inside one."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if _current.get() is not None:
            return function(*args, **kwargs)
        with one_call():
            return function(*args, **kwargs)

    return wrapped


def _overlaps(scope: Scope, others: Iterable[Scope]) -> bool:
    return any(scope.overlaps(other) for other in others)


def _digest(key: Hashable) -> bytes:
    return hashlib.blake2b(repr(key).encode("utf-8", "backslashreplace"), digest_size=16).digest()
