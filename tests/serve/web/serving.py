"""Serves a memory with its dashboard on a free port of this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import uvicorn

from gcmem import Memory
from gcmem.serve.web import mount

START_TIMEOUT_S = 20.0


def _is_there(module: str) -> bool:
    return find_spec(module) is not None


def keys_in(path: Path) -> Any:
    """Returns an empty store of keys."""
    if _is_there("gcmem.serve.keys"):
        return import_module("gcmem.serve.keys").KeyStore(path)
    return import_module("tests.serve.web.standin").StandInKeys()


def _app(memory: Memory, keys: Any) -> Any:
    if _is_there("gcmem.serve.app"):
        limits = import_module("gcmem.serve.limits").Limits(rate_per_s=0)
        return import_module("gcmem.serve.app").make_app(memory, keys=keys, limits=limits)
    return import_module("tests.serve.web.standin").make_app(memory, keys=keys)


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
