"""Runs the application with uvicorn until it is told to stop."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from gcmem.serve.addresses import bound, url_of
from gcmem.serve.logs import LOGGER, configure

GRACE_S = 30
"""How long requests that were accepted may take after the signal to stop."""


def listen(app: FastAPI, *, host: str, port: int) -> None:
    """Serves until SIGTERM or SIGINT, then finishes what was accepted."""
    sock = bound(host, port)
    configure()
    # uvicorn raises the signal again when it is done: by then it means an orderly end.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    print(f"gcmem: open {url_of(host, port)}", file=sys.stderr, flush=True)
    LOGGER.info("listening", extra={"fields": {"host": host, "port": port}})
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        # Whoever stands before this server does not decide who is asking.
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = uvicorn.Server(config)
    server.run(sockets=[sock])
    if not server.started:  # why, it has logged
        sys.exit(1)


def _leave(_signal: int, _frame: object) -> NoReturn:
    LOGGER.info("stopped")
    sys.exit(0)
