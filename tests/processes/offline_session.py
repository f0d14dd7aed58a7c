"""Runs `gcmem add`, `search` and `serve` once, and reports which host names were looked up.

Started by test_offline.py in a process of its own, where possible in a network namespace that has
nothing but its own loopback address and a name server that records what it is asked.
"""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x1 | 0x40
NO_SUCH_NAME = b"\x81\x83"
SERVED_S = 12.0
"""How long the server runs: onnxruntime's telemetry first looks for its host after nine seconds."""


class RecordingResolver:
    """A name server that knows no name and remembers each one it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.names: list[str] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        loopback = struct.pack("16sH14x", b"lo", UP_AND_RUNNING)
        fcntl.ioctl(self._socket, SET_FLAGS, loopback)
        self._socket.bind(("127.0.0.1", 53))
        settings = folder / "resolv.conf"
        settings.write_text("nameserver 127.0.0.1\n")
        subprocess.run(["mount", "--bind", str(settings), "/etc/resolv.conf"], check=True)
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            query, client = self._socket.recvfrom(4096)
            self.names.append(_name(query))
            reply = query[:2] + NO_SUCH_NAME + query[4:6] + bytes(6) + query[12:]
            self._socket.sendto(reply, client)


def _name(query: bytes) -> str:
    labels, place = [], 12
    while query[place]:
        labels.append(query[place + 1 : place + 1 + query[place]].decode())
        place += 1 + query[place]
    return ".".join(labels)


def run_commands() -> None:
    """Uses the default store of the home folder, as a new user does."""
    gcmem = [sys.executable, "-m", "gcmem"]
    subprocess.run([*gcmem, "add", "I live in Porto."], check=True)
    subprocess.run([*gcmem, "add", "I moved to Lisbon."], check=True)
    subprocess.run([*gcmem, "search", "Where do I live?"], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([*gcmem, "serve", "--port", str(port)])
    try:
        started = time.monotonic()
        while not _is_ready(port) and time.monotonic() < started + 60:
            time.sleep(0.1)
        body = json.dumps({"query": "Where do I live?"}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/search", body, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=60).close()
        time.sleep(SERVED_S)
    finally:
        server.terminate()
        server.wait(60)


def _is_ready(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    report = Path(sys.argv[1])
    resolver = RecordingResolver(report.parent) if "--isolated" in sys.argv else None
    # The recorder must hear a lookup, or its silence would prove nothing.
    if resolver is not None:
        with suppress(socket.gaierror):
            socket.getaddrinfo("control.example", 80)
        assert "control.example" in resolver.names
        resolver.names.clear()
    run_commands()
    report.write_text(json.dumps({"lookups": resolver.names if resolver else []}))
