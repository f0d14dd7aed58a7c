"""The STM in Redis: which chunks of a scope are the newest, shared by every process.

Redis keeps ids in the order of event time, and no text: what a read returns comes from the log,
so an erased chunk can't come back and changed metadata can't be old. Each scope that is being
read has one sorted set, since chunks arrive late and a list would keep the order of arrival:

    -inf  !<server's run id>|<trusted until>     the marker: this set was filled from the log
    at    <at><seq><chunk id>                    the newest chunks

The marker proves that the set is complete. It goes with the set when Redis evicts or flushes it,
it names the server process that has seen every push since, so a restart or a failover voids it,
and it ends by itself, which bounds what a writer can hide that never told Redis.
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
"""Processes with different capacities share one set, as long as none needs more than this."""
FILL_MS = 30_000
"""A fill that takes longer than this is not kept."""
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
    """Redis can't be used now."""


class RedisBuffer:
    """The most recent chunks of a scope, by event time, shared through Redis.

    It answers as the log would. What Redis can't answer exactly (times, metadata, every scope at
    once) is asked of the log; so is everything while Redis is gone, with one warning an outage.
    """

    def __init__(
        self,
        redis: str | Any,
        *,
        log: ChunkLog,
        capacity: int,
        settings: RedisSettings | None = None,
    ) -> None:
        """Takes a URL (`gcmem.store.redis.client` has the forms) or a client of redis-py.

        Nothing is connected yet: a Redis that is down is no reason not to open a memory.
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
        # Logs in memory all have the same location, and nothing in common.
        location = str(uuid.uuid4()) if log.location == IN_MEMORY else log.location
        self._prefix = f"gcmem:stm:{_digest(self.settings.namespace or location)}:{self._depth}:"

    def push(self, chunks: Sequence[Chunk]) -> None:
        """Tells Redis of chunks that the log has just acknowledged."""
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
        finally:  # also where the caller interrupts, or has made the warning an error
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
                # One that is missing was erased, and what moves up in its place only the log knows.
                if len(found) == len(ids):
                    return tuple(found[chunk_id] for chunk_id in ids)
            return self._fill(key, where)
        except _Gone:
            return self._from_log.recent(where)

    def rebuild(self) -> None:
        """Forgets every list of this log; each is read from the log when it is next asked for."""

        def forget(client: Any) -> None:
            for keys in _batches(client.scan_iter(match=f"{self._prefix}*", count=1000), 1000):
                _unlink(client, keys)

        with suppress(_Gone):  # what lies in it is not trusted for long when it is back
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
        """Returns the newest ids of a set that is complete; nothing where there is none."""
        members = client.eval(READ, 1, key, self.capacity) or ()
        texts = [m.decode() if isinstance(m, bytes) else m for m in members]
        return [_id_of(text) for text in texts if not text.startswith("!")]

    def _fill(self, key: str, where: ChunkFilter) -> tuple[Chunk, ...]:
        """Answers from the log and keeps it in Redis, unless a push comes in between."""
        token = str(uuid.uuid4())
        self._ask(lambda client: client.set(_filling(key), token, px=FILL_MS))
        newest = tuple(self._log.scan(where, by_time=True, newest_first=True, limit=self._depth))
        # An empty set would prove nothing: another log that shares the key could have made it.
        if newest:
            arguments = [part for chunk in newest for part in reversed(_member(chunk))]
            with suppress(_Gone):  # the answer is here already
                self._ask(
                    lambda client: client.eval(
                        FILL, 2, key, _filling(key), token, self._trust_ms, *arguments
                    )
                )
        return newest[: self.capacity]

    def _send(self, client: Any, newest: dict[str, dict[str, float]]) -> None:
        """Adds members in one MULTI; on a cluster one for each scope, since their slots differ."""
        is_cluster = hasattr(client, "keyslot")
        for group in _batches(newest.items(), 1 if is_cluster else len(newest)):
            with client.pipeline(transaction=True) as pipeline:
                for key, members in group:
                    pipeline.delete(_filling(key))  # what is being filled may lack these chunks
                    pipeline.zadd(key, members)
                    pipeline.zremrangebyrank(key, 1, -self._depth - 1)  # 0 is the marker
                    pipeline.pexpire(key, self._trust_ms)
                pipeline.execute()

    def _remember_missed(self, keys: dict[str, Any]) -> None:
        with self._lock:
            now = time.monotonic()
            self._missed.update(dict.fromkeys(keys, now))
            if len(self._missed) > MOST_MISSED:
                # A set that missed a chunk longer ago than this is no longer trusted anyway.
                since = now - self.settings.trust_s
                self._missed = {key: at for key, at in self._missed.items() if at > since}

    def _drop_missed(self, client: Any) -> None:
        """Drops the sets that lack a chunk since Redis was gone, before anybody reads them."""
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
    """Asks the Redis at a URL once; returns what is wrong, or None."""
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
        for key in keys:  # one by one: they lie in different slots
            pipeline.unlink(key)
        pipeline.execute()


def _batches(items: Iterable[R], size: int) -> Iterator[tuple[R, ...]]:
    iterator = iter(items)
    while batch := tuple(islice(iterator, size)):
        yield batch


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _covering(scope: Scope) -> Iterator[Scope]:
    """Yields every scope but the widest that a query for this chunk may name."""
    choices = [(value, None) if value else (None,) for value in _ids(scope)]
    for user_id, agent_id, run_id in product(*choices):
        if user_id or agent_id or run_id:
            yield Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)


def _ids(scope: Scope) -> tuple[str | None, str | None, str | None]:
    return scope.user_id, scope.agent_id, scope.run_id


def _member(chunk: Chunk) -> tuple[str, float]:
    """Returns a chunk as a member and its score.

    A score is a double: it rounds, but never swaps, so the exact time and the sequence number
    that open the member put equal scores in order.
    """
    assert chunk.at is not None
    at = (chunk.at - YEAR_ONE) // MICROSECOND
    return f"{at:020d}{chunk.seq or 0:020d}{chunk.id}", float(at)


def _id_of(member: str) -> str:
    return member[40:]
