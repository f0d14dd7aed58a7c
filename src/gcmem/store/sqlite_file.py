"""Opens a SQLite file as a gcmem store: pragmas, numbered migrations, clear errors."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcmem.errors import StoreCorruptError, StoreUnavailableError, StoreVersionError

IN_MEMORY = ":memory:"
APPLICATION_ID = 0x67636D6D  # "gcmm"
BUSY_TIMEOUT_S = 30.0
HEADER_BYTES = 100
MAGIC = b"SQLite format 3\0"
MIGRATIONS = Path(__file__).parent / "migrations"


def connect(location: str) -> sqlite3.Connection:
    """Returns a connection to the store at `location`, made and migrated where needed."""
    if location != IN_MEMORY:
        _check_file(Path(location))
    with translated_errors(location):
        connection = sqlite3.connect(
            location, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, location)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def translated_errors(location: str) -> Iterator[None]:
    """Turns SQLite's errors into gcmem's."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise StoreUnavailableError(f"{location} can't be used: {error}") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise StoreCorruptError(
                f"{location} is not a gcmem store, or is damaged ({error}); restore it from a "
                "backup, or pass another path"
            ) from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreUnavailableError(
                f"{location} is being written by another process and stayed locked for "
                f"{BUSY_TIMEOUT_S:.0f} s; try again"
            ) from error
        raise StoreUnavailableError(
            f"can't use {location}: {error}; check that the folder exists and is writable, "
            "and that the disk has room"
        ) from error


def _check_file(path: Path) -> None:
    """Makes the folder, and catches a file that was cut off: SQLite would notice only later."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise StoreUnavailableError(f"{path} is a folder; pass the path of a file")
        if not path.exists() or path.stat().st_size == 0:
            return
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except OSError as error:
        raise StoreUnavailableError(f"can't open {path}: {error.strerror or error}") from error
    if not header.startswith(MAGIC):
        raise StoreCorruptError(f"{path} is not a gcmem store; pass another path")
    # With a write-ahead log beside it the file may rightly lag behind its header.
    if path.with_name(path.name + "-wal").exists() or len(header) < HEADER_BYTES:
        return
    whole_bytes = int.from_bytes(header[16:18]) * int.from_bytes(header[28:32])
    if path.stat().st_size < whole_bytes:
        raise StoreCorruptError(
            f"{path} is cut off: {path.stat().st_size} bytes of {whole_bytes}; "
            "restore it from a backup, or pass another path"
        )


def _prepare(connection: sqlite3.Connection, location: str) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    if tables and owner != APPLICATION_ID:
        raise StoreCorruptError(f"{location} is a SQLite file, but not a gcmem store")
    # Five vectors of 384 floats fill 8 KiB almost exactly; only a new file can be given a size.
    connection.execute("PRAGMA page_size = 8192")
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    _migrate(connection, location)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switching the mode does not wait for other processes that do the same, so it is retried."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _migrate(connection: sqlite3.Connection, location: str) -> None:
    scripts = sorted(MIGRATIONS.glob("*.sql"))
    if _version(connection) == len(scripts):
        return
    with transaction(connection):
        version = _version(connection)  # again: another process may have migrated meanwhile
        if version > len(scripts):
            raise StoreVersionError(
                f"{location} was written by a newer gcmem (schema {version}, this one knows "
                f"{len(scripts)}); upgrade gcmem"
            )
        for script in scripts[version:]:
            for statement in _statements(script.read_text("utf-8")):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(scripts)}")


def _statements(script: str) -> Iterator[str]:
    """Yields the statements one by one: executescript would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commits on success and rolls back on any exception; takes the write lock at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have rolled it back already
            connection.execute("ROLLBACK")
        raise
