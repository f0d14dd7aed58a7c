"""Serves a memory with its dashboard on a free port of this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from gcmem import Memory
from gcmem.serve.http.app import make_app
from gcmem.serve.http.limits import Limits
from gcmem.serve.keys import KeyStore

START_TIMEOUT_S = 20.0


@contextmanager
def serving(memory: Memory, *, keys: KeyStore | None = None) -> Iterator[str]:
    """Yields the address of a running server, and stops it."""
    app = make_app(memory, keys=keys, limits=Limits(rate_per_s=0))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_TIMEOUT_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the server did not start")
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
