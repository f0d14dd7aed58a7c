"""Connects to PostgreSQL: connection pool, time limits, numbered migrations, clear errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from gcmem.errors import (
    GCMemError,
    InvalidInputError,
    MissingExtraError,
    StoreCorruptError,
    StoreUnavailableError,
    StoreVersionError,
)

if TYPE_CHECKING:
    from psycopg import Connection

MIGRATIONS = Path(__file__).parent / "migrations"
MIGRATION_LOCK = 0x67636D6D  # "gcmm"
OLDEST_PGVECTOR = (0, 8)
"""The first version with iterative index scans; without them, a filter lowers recall."""
NETWORK_GRACE_S = 2.0
"""How much longer than the server's own limit the client waits for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """How a PostgreSQL store connects and searches; the first three can also be set in the URL."""

    connect_timeout_s: float = 5.0
    """How long to wait for a connection, new or from the pool."""
    statement_timeout_s: float = 30.0
    """How long one statement may take, including waiting for locks."""
    pool_size: int = 8
    """Maximum number of connections; more threads than this take turns."""
    exact_below: int = 20_000
    """Up to this many matching chunks are compared one by one; above it, HNSW is used."""

    def __post_init__(self) -> None:
        for name, least in (("connect_timeout_s", 1), ("statement_timeout_s", 0.001)):
            if not getattr(self, name) >= least:
                raise InvalidInputError(f"{name}={getattr(self, name)}: pass at least {least}")
        if self.pool_size < 1 or self.exact_below < 0:
            raise InvalidInputError("pool_size must be at least 1 and exact_below at least 0")


class _ThreadState(threading.local):
    """The connection of the transaction that this thread is in, if any."""

    connection: Connection[Any] | None = None


class PostgresDatabase:
    """A migrated database behind a pool; log, index and verdicts share it."""

    def __init__(self, url: str, *, settings: PostgresSettings | None = None) -> None:
        _, pool = _drivers()
        conninfo, self.settings = _read_url(url, settings or PostgresSettings())
        self.location, self._password = _public(conninfo)
        self._thread = _ThreadState()
        options = {
            **conninfo,
            "connect_timeout": max(1, round(self.settings.connect_timeout_s)),
            "application_name": conninfo.get("application_name", "gcmem"),
            "options": " ".join(
                (
                    conninfo.get("options", ""),
                    f"-c statement_timeout={round(self.settings.statement_timeout_s * 1000)}",
                    "-c timezone=UTC -c client_encoding=UTF8 -c jit=off",
                )
            ).strip(),
            "autocommit": True,
        }
        connection_class = _bounded(self.settings.statement_timeout_s + NETWORK_GRACE_S)
        with self._translated():
            # Directly, not through the pool: a pool reports only a timeout, not its cause.
            with connection_class.connect(**options) as connection:
                _migrate(connection, self.location)
            self._pool = pool.ConnectionPool(
                connection_class=connection_class,
                kwargs=options,
                configure=_configure,
                # Checked before every use, so that a server restart does not fail a statement.
                check=pool.ConnectionPool.check_connection,
                min_size=1,
                max_size=self.settings.pool_size,
                timeout=self.settings.connect_timeout_s,
                # Short, or the growing pauses between attempts would outlast a restart.
                reconnect_timeout=self.settings.connect_timeout_s,
                open=True,
            )

    @contextmanager
    def reading(self) -> Iterator[Connection[Any]]:
        """Yields a connection in autocommit mode."""
        with self._translated(), self._pool.connection() as connection:
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """Yields a connection in a transaction; commits on success, rolls back on an exception.

        A thread that is in a transaction already stays in that one.
        """
        if self._thread.connection is not None:
            yield self._thread.connection
            return
        with self.reading() as connection, connection.transaction():
            self._thread.connection = connection
            try:
                yield connection
            finally:
                self._thread.connection = None

    @contextmanager
    def unhurried(self) -> Iterator[Connection[Any]]:
        """Yields a connection without time limits, for building an index."""
        with self.reading() as connection:
            connection.execute("SET statement_timeout = 0")
            limit_s, connection.limit_s = connection.limit_s, None
            try:
                yield connection
            finally:
                connection.limit_s = limit_s
                if not connection.closed:
                    connection.execute("RESET statement_timeout")
                    connection.execute("SELECT pg_advisory_unlock_all()")

    def close(self) -> None:
        """Closes every connection."""
        self._pool.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        psycopg, _ = _drivers()
        try:
            yield
        except GCMemError:
            raise
        except psycopg.Error as error:
            text = " ".join(str(error).split())
            if self._password:
                text = text.replace(self._password, "***")
            raise _translate(error, text, self) from error


def _translate(error: Exception, text: str, database: PostgresDatabase) -> GCMemError:
    psycopg, pool = _drivers()
    location, settings = database.location, database.settings
    errors = psycopg.errors
    if isinstance(error, errors.UniqueViolation):
        return InvalidInputError("a chunk with one of these ids exists already")
    if isinstance(error, errors.DataError) and "different vector dimensions" in text:
        return StoreCorruptError(
            f"the vectors in {location} have another length than the encoder's; re-embed the "
            f"store: gcmem reindex --store {location}"
        )
    if isinstance(error, errors.DataError):
        return InvalidInputError(f"PostgreSQL can't store this: {text}")
    if isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted)):
        return StoreCorruptError(f"{location} is damaged ({text}); restore it from a backup")
    if isinstance(error, errors.QueryCanceled):
        return StoreUnavailableError(
            f"{location} did not finish within {settings.statement_timeout_s:g} s: it is busy, or "
            "another client holds a lock; try again, or raise statement_timeout_s"
        )
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreUnavailableError(
            f"{location} refused: {text}; grant the role the missing privileges"
        )
    if isinstance(error, pool.PoolTimeout):
        return StoreUnavailableError(
            f"no connection to {location} within {settings.connect_timeout_s:g} s: check that the "
            f"server runs, or raise pool_size if all {settings.pool_size} connections are in use"
        )
    return StoreUnavailableError(
        f"can't use {location}: {text}; check that the server runs and that the URL is right, and "
        "try again (an interrupted write is stored either completely or not at all)"
    )


@cache
def _drivers() -> tuple[Any, Any]:
    try:
        import psycopg
        import psycopg_pool
    except ImportError:
        raise MissingExtraError("postgres", package="psycopg") from None
    return psycopg, psycopg_pool


@cache
def _bounded(limit_s: float) -> Any:
    """Returns a connection class with a client-side time limit: a dead network sends no error."""
    psycopg, _ = _drivers()

    class BoundedConnection(psycopg.Connection):  # type: ignore[misc,name-defined]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.limit_s: float | None = limit_s

        def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            limit = self.limit_s if timeout is None else timeout
            try:
                return super().wait(gen, interval, limit)
            except psycopg.errors._WaitTimeout:
                self.close()  # a late answer must not be read as the next statement's result
                raise psycopg.OperationalError(f"no answer within {limit:g} s") from None

    return BoundedConnection


def _read_url(url: str, settings: PostgresSettings) -> tuple[dict[str, Any], PostgresSettings]:
    """Splits a URL into the driver's options and gcmem's own settings."""
    psycopg, _ = _drivers()
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        given = {
            "connect_timeout_s": float(query.pop("connect_timeout", settings.connect_timeout_s)),
            "statement_timeout_s": float(
                query.pop("statement_timeout", settings.statement_timeout_s)
            ),
            "pool_size": int(query.pop("pool_size", settings.pool_size)),
        }
        if parts.scheme not in ("postgresql", "postgres"):
            raise ValueError
        plain = urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))
        conninfo = psycopg.conninfo.conninfo_to_dict(plain)
        # Signs of an unescaped password: parts of it would be read as a port or a database name.
        ports = str(conninfo.get("port", "0")).split(",")
        if not all(map(str.isdecimal, ports)) or "@" in parts.path or parts.fragment:
            raise ValueError
    except (ValueError, psycopg.ProgrammingError):
        # The driver's own message would show the URL with its password.
        raise InvalidInputError(
            "not a PostgreSQL URL: write postgresql://user:password@host:5432/database, with "
            "special characters in the password as %XX, and timeouts in seconds as "
            "?connect_timeout=5&statement_timeout=30"
        ) from None
    return conninfo, PostgresSettings(**given, exact_below=settings.exact_below)  # type: ignore[arg-type]


def _public(conninfo: dict[str, Any]) -> tuple[str, str | None]:
    """Returns the URL without its password, and the password."""
    user = f"{quote(conninfo['user'])}@" if conninfo.get("user") else ""
    port = f":{conninfo['port']}" if conninfo.get("port") else ""
    host = str(conninfo.get("host", "localhost"))
    host = quote(host, safe="") if host.startswith("/") else host
    location = f"postgresql://{user}{host}{port}/{quote(str(conninfo.get('dbname', '')))}"
    return location, conninfo.get("password")


def _configure(connection: Connection[Any]) -> None:
    """Makes commits wait for the disk if the server's default does not; keeps stricter settings."""
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )


def _migrate(connection: Connection[Any], location: str) -> None:
    scripts = sorted(MIGRATIONS.glob("*.sql"))
    if _version(connection, location, newest=len(scripts)) == len(scripts):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        # Read again: another process may have migrated while this one waited for the lock.
        version = _version(connection, location, newest=len(scripts))
        _require_pgvector(connection, location)
        for script in scripts[version:]:
            connection.execute(script.read_text("utf-8"))
        connection.execute(
            "INSERT INTO gcmem_meta VALUES ('schema_version', %s) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (str(len(scripts)),),
        )


def _version(connection: Connection[Any], location: str, *, newest: int) -> int:
    # Not to_regclass: its cache may be older than the lock.
    known = connection.execute(
        "SELECT FROM pg_class WHERE relname = 'gcmem_meta' AND pg_table_is_visible(oid)"
    ).fetchone()
    if known is None:
        return 0
    row = connection.execute("SELECT value FROM gcmem_meta WHERE key = 'schema_version'").fetchone()
    version = int(row[0]) if row else 0
    if version > newest:
        raise StoreVersionError(
            f"{location} was written by a newer gcmem (schema {version}; this one supports up to "
            f"{newest}); upgrade gcmem"
        )
    return version


def _require_pgvector(connection: Connection[Any], location: str) -> None:
    psycopg, _ = _drivers()
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported,
            psycopg.errors.UndefinedFile) as error:  # fmt: skip
        raise StoreUnavailableError(
            f"{location} has no pgvector: install it on the server, and have an administrator run "
            "CREATE EXTENSION vector in this database"
        ) from error
    row = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    version = tuple(int(part) for part in str(row[0] if row else "0.0").split(".")[:2])
    if version < OLDEST_PGVECTOR:
        raise StoreUnavailableError(
            f"{location} has pgvector {row and row[0]}, gcmem needs 0.8 or newer: update it and "
            "run ALTER EXTENSION vector UPDATE"
        )
