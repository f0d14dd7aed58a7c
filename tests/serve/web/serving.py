"""Serves a memory with its dashboard on a free port of this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from gcmem import Memory
from gcmem.serve.web import mount

try:
    from gcmem.serve.app import make_app
    from gcmem.serve.keys import KeyStore
    from gcmem.serve.limits import Limits

    def keys_in(path: Path) -> Any:
        return KeyStore(path)

    def _app(memory: Memory, keys: Any) -> Any:
        return make_app(memory, keys=keys, limits=Limits(rate_per_s=0))

except ImportError:
    from tests.serve.web.standin import StandInKeys
    from tests.serve.web.standin import make_app as make_stand_in

    def keys_in(path: Path) -> Any:
        return StandInKeys()

    def _app(memory: Memory, keys: Any) -> Any:
        return make_stand_in(memory, keys=keys)


START_TIMEOUT_S = 20.0


@contextmanager
def serving(memory: Memory, *, keys: Any = None) -> Iterator[str]:
    """Yields the address of a running server, and stops it."""
    app = _app(memory, keys)
    if not any(getattr(route, "path", None) == "/" for route in app.routes):
        mount(app)
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
