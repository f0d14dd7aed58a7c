"""Redis addresses: one server, Sentinel or Cluster, with TLS and auth, from a URL.

redis://[user:password@]host[:port][/db]             one server; rediss:// with TLS
unix:///path/to/socket                               one server on this machine
redis+sentinel://host:port,host:port/service[/db]    the master that Sentinel names
redis+cluster://host:port,host:port                  Redis Cluster
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from gcmem.errors import InvalidInputError, MissingExtraError
from gcmem.store.redact import redacted

SCHEMES = (
    "redis", "rediss", "unix",
    "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster",
)  # fmt: skip
SENTINEL_PORT = 26379
REDIS_PORT = 6379


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSettings:
    """How Redis is used; each setting can also be in the URL: `redis://host?trust_s=1`."""

    namespace: str = ""
    """Separates the sets of different logs in one Redis; if empty, the log's location is used."""
    trust_s: float = 5.0
    """How long a set counts as complete before it is read from the log again. This limits how long
    a chunk can be missing if its writer did not tell Redis."""
    timeout_s: float = 0.5
    """How long to wait for a connection or an answer."""
    retries: int = 1
    """How often a call is retried, with backoff, before Redis counts as down."""
    retry_after_s: float = 5.0
    """How long to wait before trying Redis again once it is down."""

    def __post_init__(self) -> None:
        for name in ("trust_s", "timeout_s", "retry_after_s"):
            if not 0.001 <= getattr(self, name) <= 86_400:
                raise InvalidInputError(
                    f"{name}={getattr(self, name)}: pass seconds from 0.001 to 86400"
                )
        if not 0 <= self.retries <= 10:
            raise InvalidInputError(f"retries={self.retries}: pass a whole number from 0 to 10")


OPTIONS: dict[str, Callable[[str], Any]] = {
    "namespace": str,
    "trust_s": float,
    "timeout_s": float,
    "retries": int,
    "retry_after_s": float,
}


def split_settings(url: str, settings: RedisSettings) -> tuple[str, RedisSettings]:
    """Returns the URL without gcmem's own options, and the settings with those applied."""
    base, _, query = url.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    try:
        own = {name: OPTIONS[name](value) for name, value in options if name in OPTIONS}
    except ValueError as error:
        raise InvalidInputError(f"{redacted(url)}: {error}") from None
    return _join(base, [pair for pair in options if pair[0] not in OPTIONS]), replace(
        settings, **own
    )


def connector(url: str, settings: RedisSettings) -> Callable[[], Any]:
    """Returns a function that creates the client for a URL; only calling it connects."""
    redis = _redis()
    parts = _split(url)
    form, _, kind = parts.scheme.partition("+")
    credentials, at, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    query = parse_qsl(parts.query, keep_blank_values=True)
    sentinel_password = dict(query).get("sentinel_password")
    single = url  # for the client's own parser: TLS, credentials, options, database
    if kind:
        path = f"/{database}" if kind == "sentinel" else ""
        mine = [pair for pair in query if pair[0] != "sentinel_password"]
        single = _join(f"{form}://{credentials}{at}localhost{path}", mine)
    try:
        if kind == "sentinel" and not service:
            raise ValueError("name the service: redis+sentinel://host/service")
        nodes = _nodes(hosts, SENTINEL_PORT if kind == "sentinel" else REDIS_PORT) if kind else []
        options = redis.connection.parse_url(single)
        # Made only to reject unknown options now instead of at the first read.
        redis.ConnectionPool.from_url(single).make_connection()
    except (ValueError, TypeError, redis.RedisError) as error:
        raise InvalidInputError(f"{redacted(url)} is not a usable Redis URL: {error}") from None
    timing = {
        "socket_timeout": settings.timeout_s,
        "socket_connect_timeout": settings.timeout_s,
        "retry": redis.retry.Retry(
            redis.backoff.ExponentialBackoff(cap=0.1, base=0.01), settings.retries
        ),
    }
    if not kind:
        return lambda: redis.Redis.from_url(single, **timing)
    tls = options.pop("connection_class", None) is redis.SSLConnection
    options = {**timing, "ssl": tls, **options}
    del options["host"]
    if kind == "cluster":
        return lambda: redis.RedisCluster(
            startup_nodes=[redis.cluster.ClusterNode(*node) for node in nodes], **options
        )
    watching = {**timing, "password": sentinel_password, "ssl": tls}
    return lambda: redis.Sentinel(nodes, sentinel_kwargs=watching).master_for(service, **options)


def failures() -> tuple[type[Exception], ...]:
    """Returns the exceptions that the client raises when Redis can't be used."""
    redis = _redis()
    # Some errors of the cluster client are not a RedisError, nor is a failed name lookup.
    return (redis.RedisError, redis.exceptions.RedisClusterException, OSError)


def _redis() -> Any:
    try:
        import redis
        import redis.backoff
        import redis.cluster
        import redis.retry
    except ImportError:
        raise MissingExtraError("redis", package="redis") from None
    return redis


def _split(url: str) -> Any:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidInputError(f"{redacted(url)} is not a usable Redis URL: {error}") from None
    if parts.scheme not in SCHEMES:
        raise InvalidInputError(
            f"{redacted(url)}: the recency buffer accepts the schemes {', '.join(SCHEMES)}"
        )
    return parts


def _nodes(hosts: str, default_port: int) -> list[tuple[str, int]]:
    nodes = []
    for item in hosts.split(","):
        bare = urlsplit(f"//{item}")
        if not bare.hostname:
            raise ValueError("it names no host")
        nodes.append((bare.hostname, bare.port or default_port))
    return nodes


def _join(base: str, options: list[tuple[str, str]]) -> str:
    return f"{base}?{urlencode(options)}" if options else base
