"""Opens a SQLite file as a gcmem store: pragmas, numbered migrations, clear errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcmem.errors import (
    StoreCorruptError,
    StoreReplacedError,
    StoreUnavailableError,
    StoreVersionError,
)
from gcmem.private_files import make_private_file, make_private_folder

IN_MEMORY = ":memory:"
GENERATION = "generation"
"""The setting that counts how often vectors or words were rebuilt as a whole."""
APPLICATION_ID = 0x67636D6D  # "gcmm"
BUSY_TIMEOUT_S = 30.0
MIGRATIONS = Path(__file__).parent / "migrations"
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class StoreFile:
    """The file of one open store: opens connections and notices if the file is replaced.

    `connection` is the first connection; the store is created and migrated if needed. A file that
    can't be written is opened read-only.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self.in_memory = location == IN_MEMORY
        self.read_only = False
        self._has_locks = True
        self._options = "mode=rw"
        # Absolute, since the process may change its folder while the store is open.
        self.path = Path(location).absolute()
        # SQLite keeps the log beside the file that a link points to.
        self.wal = _beside(self.path.resolve(), "-wal")
        with translated_errors(location):
            self.connection = self._open()
        self._names = (str(self.path), str(self.wal))  # stat takes a string faster than a Path
        self._marks = tuple(map(self._mark, self._names))

    def connect(self, *, timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
        """Returns a new connection; in memory, each one is a separate, empty database."""
        target = IN_MEMORY if self.in_memory else f"{self.path.as_uri()}?{self._options}"
        return sqlite3.connect(
            target, timeout=timeout_s, isolation_level=None, check_same_thread=False, uri=True
        )

    def check_in_place(self, *, wal: bool = False) -> None:
        """Raises if the path no longer names the open file; `wal` checks its log too."""
        if self.in_memory or (
            self._mark(self._names[0]) == self._marks[0]
            # Without locks, a new log file is the first sign of another writer.
            and (not (wal or not self._has_locks) or self._mark(self._names[1]) == self._marks[1])
        ):
            return
        raise StoreReplacedError(
            f"{self.location} or its -wal file was deleted, moved or replaced while it was open: "
            "anything added since is lost. Put the right file in place and open it again (restart "
            "the server)"
        )

    def _mark(self, path: str) -> tuple[int, ...] | None:
        try:
            found = os.stat(path)
        except OSError:
            return None
        # Without locks, the file must not change at all.
        content = () if self._has_locks else (found.st_size, found.st_mtime_ns)
        return (found.st_dev, found.st_ino, *content)

    def _open(self) -> sqlite3.Connection:
        if self.in_memory:
            return self._prepared()
        _make_file(self.path)
        self.read_only = not _is_writable(self.path)
        if not self.read_only:
            return self._prepared()
        self._options = "mode=ro"
        try:
            return self._prepared()
        except sqlite3.OperationalError as error:
            if _code(error) not in NOT_WRITABLE:
                raise
        if self.wal.exists() and self.wal.stat().st_size:
            raise StoreUnavailableError(
                f"{self.location} is read-only, and {self.wal.name} beside it contains changes "
                "that can't be read here: open the store once where it is writable, or copy it "
                "from there with gcmem backup"
            )
        # Without a log, nobody has the file open. A folder that can't be written can't hold locks
        # either, so the file is read without them.
        self._has_locks = False
        self._options = "immutable=1"
        return self._prepared()

    def _prepared(self) -> sqlite3.Connection:
        had_wal = self.in_memory or self.wal.exists()
        connection = self.connect()
        try:
            _check_owner(connection, self.location)
            if not had_wal:
                _check_size(connection, self.path)
            if self.read_only:
                _check_migrated(connection, self.location)
            else:
                _prepare(connection, self.location)
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
        code = _code(error)
        if code in DAMAGED:
            raise StoreCorruptError(
                f"{location} is not a gcmem store, or it is cut off or damaged ({error}); restore "
                "it from a backup, or pass another path"
            ) from error
        if code in BUSY:
            raise StoreUnavailableError(
                f"another process is writing to {location} and kept it locked for "
                f"{BUSY_TIMEOUT_S:.0f} s; try again"
            ) from error
        if code == sqlite3.SQLITE_READONLY:
            raise StoreUnavailableError(
                f"{location} is read-only: it can be searched, but nothing can be added or "
                "forgotten; check the permissions of the file and its folder, and the mount"
            ) from error
        raise StoreUnavailableError(
            f"can't use {location}: {error}; check that the folder exists and is writable, "
            "and that the disk has free space"
        ) from error


def _code(error: sqlite3.Error) -> int:
    """Returns the error's primary code."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.resolve().parent, os.W_OK)


def _make_file(path: Path) -> None:
    """Creates the file and its folder if missing; SQLite gives its log the file's mode.

    It does not open an existing file: closing it would release this process's locks on it.
    """
    try:
        if path.is_dir():
            raise StoreUnavailableError(f"{path} is a folder; pass the path of a file")
        if not path.exists():
            target = path.resolve()  # a link may point to a file that does not exist yet
            make_private_folder(target.parent)
            make_private_file(target)
    except OSError as error:
        raise StoreUnavailableError(f"can't open {path}: {error.strerror or error}") from error


def _check_owner(connection: sqlite3.Connection, location: str) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    if tables and owner != APPLICATION_ID:
        raise StoreCorruptError(f"{location} is a SQLite file, but not a gcmem store")


def _check_size(connection: sqlite3.Connection, path: Path) -> None:
    """Raises if the file is cut off within its last page; SQLite would notice only later.

    Call it only without a write-ahead log: with one, the file may be shorter.
    """
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    whole_bytes = pages * connection.execute("PRAGMA page_size").fetchone()[0]
    if path.stat().st_size < whole_bytes:
        raise StoreCorruptError(
            f"{path} is cut off: {path.stat().st_size} bytes of {whole_bytes}; "
            "restore it from a backup, or pass another path"
        )


def _check_migrated(connection: sqlite3.Connection, location: str) -> None:
    version, known = _version(connection), len(list(MIGRATIONS.glob("*.sql")))
    if version < known:
        raise StoreVersionError(
            f"{location} is read-only and was written by an older gcmem (schema {version}, this "
            f"one needs {known}); open it once where it is writable"
        )
    _check_not_newer(version, known, location)


def _check_not_newer(version: int, known: int, location: str) -> None:
    if version > known:
        raise StoreVersionError(
            f"{location} was written by a newer gcmem (schema {version}; this one supports up to "
            f"{known}); upgrade gcmem"
        )


def _prepare(connection: sqlite3.Connection, location: str) -> None:
    # Five vectors of 384 floats almost fill 8 KiB. This has an effect only on a new file.
    connection.execute("PRAGMA page_size = 8192")
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    _migrate(connection, location)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switches to WAL. SQLite does not wait for other processes that do the same, so it retries."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _code(error) not in BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _migrate(connection: sqlite3.Connection, location: str) -> None:
    scripts = sorted(MIGRATIONS.glob("*.sql"))
    if _version(connection) == len(scripts):
        return
    with transaction(connection):
        version = _version(connection)  # read again: another process may have migrated meanwhile
        _check_not_newer(version, len(scripts), location)
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


def get_meta(connection: sqlite3.Connection, key: str) -> str | None:
    """Returns one of the store's own settings."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Saves one of the store's own settings."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (key, value))


def next_generation(connection: sqlite3.Connection) -> None:
    """Makes every process load its rows anew."""
    set_meta(connection, GENERATION, str(int(get_meta(connection, GENERATION) or 0) + 1))


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
