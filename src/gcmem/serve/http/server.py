"""Runs the application with uvicorn until it is told to stop."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from gcmem.serve.http.addresses import listening_socket, url_of
from gcmem.serve.http.connections import CLOSING_DELAY_S, guarded_protocol
from gcmem.serve.http.limits import Limits
from gcmem.serve.http.logs import LOGGER, configure

REPLYING_S = 5
"""Seconds that the last replies may take after all work has ended."""


def listen(app: FastAPI, *, host: str, port: int, limits: Limits) -> None:
    """Serves until SIGTERM or SIGINT, then finishes what was accepted."""
    sock = listening_socket(host, port)
    configure()
    # uvicorn raises the signal again after an orderly shutdown.
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGINT, _exit)
    print(f"gcmem: open {url_of(host, port)}", file=sys.stderr, flush=True)
    LOGGER.info("listening", extra={"fields": {"host": host, "port": port}})
    config = uvicorn.Config(
        app,
        http=guarded_protocol(limits),
        ws="none",
        log_config=None,
        access_log=False,
        # Headers of a proxy must not decide who the caller is.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=math.ceil(limits.keep_alive_s),
        timeout_graceful_shutdown=math.ceil(limits.grace_s) + REPLYING_S,
    )
    server = _Server(config, drain=partial(app.state.service.workers.drain, limits.grace_s))
    server.run(sockets=[sock])
    if not server.started:  # the reason is in the logs
        sys.exit(1)


class _Server(uvicorn.Server):
    """Drains the workers while uvicorn waits for the last replies."""

    def __init__(
        self, config: uvicorn.Config, *, drain: Callable[[], Coroutine[None, None, None]]
    ) -> None:
        super().__init__(config)
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops the server."""
        draining = asyncio.create_task(self._drain())
        # A client that connects at this moment still gets a reply.
        await asyncio.sleep(CLOSING_DELAY_S)
        await super().shutdown(sockets)
        await draining


def _exit(_signal: int, _frame: object) -> NoReturn:
    LOGGER.info("stopped")
    sys.exit(0)
