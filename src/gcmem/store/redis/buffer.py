"""The STM in Redis: the newest chunks of each scope, shared by every process.

Redis keeps only ids, ordered by event time. The chunks themselves come from the log, so an erased
chunk can't come back and metadata is never outdated. Each scope that is being read has one sorted
set; a list would keep the order of arrival, and chunks may arrive late:

    -inf  !<server's run id>|<trusted until>     the marker: this set was filled from the log
    at    <at><seq><chunk id>                    the newest chunks

The marker proves that the set is complete. It disappears with the set when Redis evicts or flushes
it. It names the server process that received every push since, so a restart or failover makes it
invalid. It also expires, which limits how long a chunk is missed if its writer never told Redis.
"""

from __future__ import annotations

import hashlib
import heapq
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from typing import Any, TypeVar

from gcmem.errors import StoreDegradedWarning
from gcmem.protocols import ChunkLog
from gcmem.store.circuit import Circuit
from gcmem.store.recent import LogBuffer
from gcmem.store.redact import redacted
from gcmem.store.redis.client import RedisSettings, connector, failures, split_settings
from gcmem.types import Chunk, ChunkFilter, Scope

R = TypeVar("R")
YEAR_ONE = datetime(1, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LEAST_DEPTH = 64
"""Processes with different capacities share one set if none needs more than this."""
FILL_MS = 30_000
"""A fill that takes longer than this is discarded."""
MOST_MISSED = 10_000
IN_MEMORY = ":memory:"

READ = """
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not head then return false end
local server, ends = string.match(head, '^!(%x+)|(%d+)$')
if not server then return false end
if server ~= string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') then return false end
local now = redis.call('TIME')
if now[1] * 1000 + now[2] / 1000 >= tonumber(ends) then return false end
return redis.call('ZREVRANGE', KEYS[1], 0, ARGV[1] - 1)
"""
FILL = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local now = redis.call('TIME')
local ends = string.format('%.0f', now[1] * 1000 + now[2] / 1000 + ARGV[2])
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZADD', KEYS[1], '-inf', '!' .. server .. '|' .. ends)
for i = 3, #ARGV, 2 do redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""


class _Gone(Exception):  # noqa: N818 - never leaves this file
    """Redis can't be used right now."""


class RedisBuffer:
    """The most recent chunks of a scope, by event time, shared through Redis.

    It always answers as the log would. The log answers what Redis can't (filters by time or
    metadata, all scopes at once), and everything while Redis is down, with one warning per outage.
    """

    def __init__(
        self,
        redis: str | Any,
        *,
        log: ChunkLog,
        capacity: int,
        settings: RedisSettings | None = None,
    ) -> None:
        """Takes a URL (see `gcmem.store.redis.client` for its forms) or a redis-py client.

        It does not connect yet: a memory opens even if Redis is down.
        """
        self.capacity = capacity
        self.settings = settings or RedisSettings()
        self.location = "redis"
        if isinstance(redis, str):
            self.location = redacted(redis)
            redis, self.settings = split_settings(redis, self.settings)
        self._failures = failures()
        self._connect: Callable[[], Any] = (
            connector(redis, self.settings) if isinstance(redis, str) else lambda: redis
        )
        self._owns_client = isinstance(redis, str)
        self._client: Any = None
        self._log = log
        self._from_log = LogBuffer(log, capacity=capacity)
        self._circuit = Circuit(retry_after_s=self.settings.retry_after_s)
        self._lock = threading.Lock()
        self._missed: dict[str, float] = {}
        self._depth = max(LEAST_DEPTH, 1 << max(capacity - 1, 0).bit_length())
        self._trust_ms = round(self.settings.trust_s * 1000)
        # All logs in memory have the same location, but must not share a set.
        location = str(uuid.uuid4()) if log.location == IN_MEMORY else log.location
        self._prefix = f"gcmem:stm:{_digest(self.settings.namespace or location)}:{self._depth}:"

    def push(self, chunks: Sequence[Chunk]) -> None:
        """Tells Redis about chunks that the log has just stored."""
        members: dict[str, list[tuple[str, float]]] = {}
        for chunk in chunks:
            for scope in _covering(chunk.scope):
                members.setdefault(self._key(scope), []).append(_member(chunk))
        if not members or not self.capacity:
            return
        newest = {key: dict(heapq.nlargest(self._depth, of)) for key, of in members.items()}
        told = False
        try:
            with suppress(_Gone):
                self._ask(lambda client: self._send(client, newest))
                told = True
        finally:  # also if the caller interrupts, or turns the warning into an error
            if not told:
                self._remember_missed(newest)

    def recent(self, where: ChunkFilter) -> tuple[Chunk, ...]:
        """Returns the newest chunks that match, newest first."""
        if not self.capacity or where != ChunkFilter(scope=where.scope) or where.scope == Scope():
            return self._from_log.recent(where)
        key = self._key(where.scope)
        try:
            ids = self._ask(lambda client: self._read(client, key))
            if ids:
                found = self._log.get(ids)
                # A missing chunk was erased; only the log knows which chunk takes its place.
                if len(found) == len(ids):
                    return tuple(found[chunk_id] for chunk_id in ids)
            return self._fill(key, where)
        except _Gone:
            return self._from_log.recent(where)

    def rebuild(self) -> None:
        """Drops every set of this log; each is filled from the log at its next read."""

        def forget(client: Any) -> None:
            for keys in _batches(client.scan_iter(match=f"{self._prefix}*", count=1000), 1000):
                _unlink(client, keys)

        with suppress(_Gone):  # if Redis comes back with old sets, their markers expire soon
            self._ask(forget)

    def close(self) -> None:
        """Closes the connections, unless the client was passed in."""
        with self._lock:
            if self._owns_client and self._client is not None:
                self._client.close()
                self._client = None

    def _ask(self, operation: Callable[[Any], R]) -> R:
        """Runs an operation on Redis, or raises _Gone at once while the circuit is open."""
        if not self._circuit.allows():
            raise _Gone
        try:
            client = self._connected()
            self._drop_missed(client)
            result = operation(client)
        except self._failures as error:
            if self._circuit.failed():
                warnings.warn(
                    f"{self.location} can't be used ({error}); recent chunks are read from the "
                    "log until it is back",
                    StoreDegradedWarning,
                    stacklevel=4,
                )
            raise _Gone from error
        self._circuit.succeeded()
        return result

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _read(self, client: Any, key: str) -> list[str]:
        """Returns the newest ids of a complete set; an empty list if there is no such set."""
        members = client.eval(READ, 1, key, self.capacity) or ()
        texts = [m.decode() if isinstance(m, bytes) else m for m in members]
        return [_id_of(text) for text in texts if not text.startswith("!")]

    def _fill(self, key: str, where: ChunkFilter) -> tuple[Chunk, ...]:
        """Answers from the log and stores the answer in Redis, unless a push comes in between."""
        token = str(uuid.uuid4())
        self._ask(lambda client: client.set(_filling(key), token, px=FILL_MS))
        newest = tuple(self._log.scan(where, by_time=True, newest_first=True, limit=self._depth))
        # An empty set proves nothing: another log that shares the key could have made it.
        if newest:
            arguments = [part for chunk in newest for part in reversed(_member(chunk))]
            with suppress(_Gone):  # the answer is known already
                self._ask(
                    lambda client: client.eval(
                        FILL, 2, key, _filling(key), token, self._trust_ms, *arguments
                    )
                )
        return newest[: self.capacity]

    def _send(self, client: Any, newest: dict[str, dict[str, float]]) -> None:
        """Adds members in one MULTI; on a cluster in one per scope, since their slots differ."""
        is_cluster = hasattr(client, "keyslot")
        for group in _batches(newest.items(), 1 if is_cluster else len(newest)):
            with client.pipeline(transaction=True) as pipeline:
                for key, members in group:
                    pipeline.delete(_filling(key))  # a fill in progress may lack these chunks
                    pipeline.zadd(key, members)
                    pipeline.zremrangebyrank(key, 1, -self._depth - 1)  # 0 is the marker
                    pipeline.pexpire(key, self._trust_ms)
                pipeline.execute()

    def _remember_missed(self, keys: dict[str, Any]) -> None:
        with self._lock:
            now = time.monotonic()
            self._missed.update(dict.fromkeys(keys, now))
            if len(self._missed) > MOST_MISSED:
                # A set that missed a chunk before this time has expired anyway.
                since = now - self.settings.trust_s
                self._missed = {key: at for key, at in self._missed.items() if at > since}

    def _drop_missed(self, client: Any) -> None:
        """Drops the sets that missed a chunk during an outage, before anyone reads them."""
        if not self._missed:
            return
        with self._lock:
            for keys in _batches(tuple(self._missed), 1000):
                _unlink(client, [name for key in keys for name in (key, _filling(key))])
            self._missed.clear()

    def _key(self, scope: Scope) -> str:
        # The braces are Redis Cluster's hash tag: a set and its filling key share a slot.
        return f"{self._prefix}{{{_digest(repr(_ids(scope)))}}}"


def check_redis(url: str) -> str | None:
    """Tests the Redis at a URL with one call; returns what is wrong, or None."""
    bare, settings = split_settings(url, RedisSettings())
    try:
        with connector(bare, settings)() as client:
            client.eval(READ, 1, "gcmem:stm:check", 1)
    except failures() as error:
        return f"{redacted(url)} can't be used: {error}"
    return None


def _filling(key: str) -> str:
    return f"{key}:filling"


def _unlink(client: Any, keys: Sequence[str | bytes]) -> None:
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:  # one by one: on a cluster their slots differ
            pipeline.unlink(key)
        pipeline.execute()


def _batches(items: Iterable[R], size: int) -> Iterator[tuple[R, ...]]:
    iterator = iter(items)
    while batch := tuple(islice(iterator, size)):
        yield batch


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _covering(scope: Scope) -> Iterator[Scope]:
    """Yields every scope that covers a chunk's scope, except the empty one."""
    choices = [(value, None) if value else (None,) for value in _ids(scope)]
    for user_id, agent_id, run_id in product(*choices):
        if user_id or agent_id or run_id:
            yield Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)


def _ids(scope: Scope) -> tuple[str | None, str | None, str | None]:
    return scope.user_id, scope.agent_id, scope.run_id


def _member(chunk: Chunk) -> tuple[str, float]:
    """Returns a chunk as a member of the sorted set, and its score.

    The score is a double, which may round two times to one value. Redis then sorts by member, so
    the member begins with the exact time and the sequence number.
    """
    assert chunk.at is not None
    at = (chunk.at - YEAR_ONE) // MICROSECOND
    return f"{at:020d}{chunk.seq or 0:020d}{chunk.id}", float(at)


def _id_of(member: str) -> str:
    return member[40:]
