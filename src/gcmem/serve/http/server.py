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

from gcmem.serve.http.addresses import bound, url_of
from gcmem.serve.http.connections import LAST_WORDS_S, guarded_protocol
from gcmem.serve.http.limits import Limits
from gcmem.serve.http.logs import LOGGER, configure

REPLYING_S = 5
"""How long the last replies may take, after the work was finished or stopped."""


def listen(app: FastAPI, *, host: str, port: int, limits: Limits) -> None:
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
        http=guarded_protocol(limits),
        ws="none",
        log_config=None,
        access_log=False,
        # Whoever stands before this server does not decide who is asking.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=math.ceil(limits.keep_alive_s),
        timeout_graceful_shutdown=math.ceil(limits.grace_s) + REPLYING_S,
    )
    server = _Server(config, drain=partial(app.state.service.workers.drain, limits.grace_s))
    server.run(sockets=[sock])
    if not server.started:  # why, it has logged
        sys.exit(1)


class _Server(uvicorn.Server):
    """Tells the workers to come to an end, while uvicorn waits for the last replies."""

    def __init__(
        self, config: uvicorn.Config, *, drain: Callable[[], Coroutine[None, None, None]]
    ) -> None:
        super().__init__(config)
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops the server."""
        draining = asyncio.create_task(self._drain())
        # Who is connecting just now gets a reply, if only that the server stops.
        await asyncio.sleep(LAST_WORDS_S)
        await super().shutdown(sockets)
        await draining


def _leave(_signal: int, _frame: object) -> NoReturn:
    LOGGER.info("stopped")
    sys.exit(0)
