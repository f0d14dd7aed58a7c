"""Copies a SQLite store into a file while it is in use, with SQLite's online backup."""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path

from gcmem.errors import InvalidInputError, StoreCorruptError, StoreUnavailableError
from gcmem.private_files import make_private_file
from gcmem.protocols import Progress
from gcmem.store.sqlite.file import StoreFile, translated_errors

PAGES_PER_STEP = 64
COUNTS = "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM vectors)"


def back_up(
    file: StoreFile,
    target: Path,
    *,
    lock: threading.RLock,
    overwrite: bool,
    progress: Progress | None,
) -> int:
    """Copies the store as it is now; returns the number of chunks in the copy.

    The copy is written beside the target, checked, and renamed when it is complete. Writers don't
    wait, and what they add meanwhile is not in the copy.
    """
    target = target.expanduser().absolute()
    _check_target(file, target, overwrite=overwrite)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        make_private_file(temporary)
        with translated_errors(file.location), _snapshot(file, lock) as source:
            counts = source.execute(COUNTS).fetchone()
            _copy(source, temporary, progress)
        _check_copy(temporary, counts)
        _sync(temporary)
        _check_target(file, target, overwrite=overwrite)
        os.replace(temporary, target)
        if hasattr(os, "O_DIRECTORY"):  # Windows can't open a folder
            _sync(target.parent)
    except OSError as error:
        raise StoreUnavailableError(f"can't write {target}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return int(counts[0])


def _check_target(file: StoreFile, target: Path, *, overwrite: bool) -> None:
    if target.is_dir():
        raise InvalidInputError(f"{target} is a folder; pass the path of a file")
    if not file.in_memory and target.resolve() == file.path.resolve():
        raise InvalidInputError(f"{target} is the store itself; pass another path")
    for suffix in ("-wal", "-journal"):
        # SQLite would apply this leftover to the new file and damage it.
        if (beside := target.with_name(target.name + suffix)).exists():
            raise InvalidInputError(
                f"{target} is a store in use, or was not closed: {beside.name} is beside it; "
                "pass another path"
            )
    if target.exists() and not overwrite:
        raise InvalidInputError(
            f"{target} exists; pass another path, or overwrite=True (--force) to replace it"
        )


@contextmanager
def _snapshot(file: StoreFile, lock: threading.RLock) -> Iterator[sqlite3.Connection]:
    """Yields a connection in a read transaction: without one, every write would restart the copy.

    A store in memory has only one connection, so there writers do wait.
    """
    opened: AbstractContextManager[sqlite3.Connection] = (
        nullcontext(file.connection) if file.in_memory else closing(file.connect())
    )
    with lock if file.in_memory else nullcontext(), opened as connection:
        file.check_in_place(wal=True)
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")


def _copy(source: sqlite3.Connection, target: Path, progress: Progress | None) -> None:
    def step(status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        # The file is renamed once it is complete and on disk; until then it may be lost.
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        source.backup(copy, pages=PAGES_PER_STEP, progress=step)


def _check_copy(copy: Path, counts: tuple[int, int]) -> None:
    """Checks the whole copy. Nobody else has it open, so it needs no locks and no log."""
    with (
        translated_errors(str(copy)),
        closing(sqlite3.connect(f"{copy.as_uri()}?immutable=1", uri=True)) as connection,
    ):
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        copied = connection.execute(COUNTS).fetchone()
    if found != "ok":
        raise StoreCorruptError(
            f"the copy is damaged ({found}); the disk may be faulty: try another one"
        )
    if copied != counts:
        raise StoreCorruptError(f"the copy has {copied} chunks and vectors, the store {counts}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
