"""Runs the application with uvicorn until it is told to stop."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from gcmem.serve.logs import LOGGER, configure

GRACE_S = 30
"""How long requests that were accepted may take after the signal to stop."""


def listen(app: FastAPI, *, host: str, port: int) -> None:
    """Serves until SIGTERM or SIGINT, then finishes what was accepted."""
    configure()
    # uvicorn raises the signal again when it is done: by then it means an orderly end.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    LOGGER.info("listening", extra={"fields": {"host": host, "port": port}})
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        # Whoever stands before this server does not decide who is asking.
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )


def _leave(_signal: int, _frame: object) -> NoReturn:
    LOGGER.info("stopped")
    sys.exit(0)
