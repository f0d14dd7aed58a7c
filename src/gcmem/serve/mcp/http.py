"""MCP over streamable HTTP, for this machine only or behind a token."""

from __future__ import annotations

import hmac
import ipaddress
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gcmem.errors import ForbiddenError, InvalidInputError
from gcmem.serve.http.access import check_is_direct, is_loopback
from gcmem.serve.http.addresses import listening_socket, url_of

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MIN_TOKEN_CHARS = 16
SET_A_TOKEN = "set it in an environment variable and name that: --token-env GCMEM_MCP_TOKEN"
GRACE_S = 5
"""Seconds that requests get after the signal to stop: a client may keep a stream open forever."""


def make_http_app(
    server: MCPServer, *, host: str, token: str | None = None, allowed_hosts: Sequence[str] = ()
) -> ASGIApp:
    """Returns the application, at /mcp. Without a token, only this machine may call it directly.

    The Host header must name one of `allowed_hosts`, `host` or this machine, and the Origin header
    no other site: a web page can't reach the server through a name that points to this machine.
    """
    if token is not None and len(token) < MIN_TOKEN_CHARS:
        raise InvalidInputError(
            f"the token is too short: use at least {MIN_TOKEN_CHARS} characters"
        )
    if not is_loopback(host) and token is None:
        raise InvalidInputError(
            f"{host} can be reached from other machines, so a token is needed: {SET_A_TOKEN}"
        )
    if allowed_hosts and token is None:
        raise InvalidInputError(
            f"others reach this server as {allowed_hosts[0]}, so a token is needed: {SET_A_TOKEN}"
        )
    names = [*LOOPBACK, *allowed_hosts]
    if _is_every_address(host):
        if not allowed_hosts:
            raise InvalidInputError(
                f"{host} is every address; say by which name clients reach this machine: "
                "--allow-host memory.example.org"
            )
    else:
        names.append(f"[{host}]" if ":" in host else host)
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
        allowed_origins=[
            form
            for name in names
            for scheme in ("http", "https")
            for form in (f"{scheme}://{name}", f"{scheme}://{name}:*")
        ],
    )
    app: ASGIApp = server.streamable_http_app(host=host, transport_security=security)
    return DirectOnly(app) if token is None else BearerToken(app, token)


def serve_http(app: ASGIApp, *, host: str, port: int) -> None:
    """Prints the address on stderr, and serves until SIGTERM or SIGINT."""
    sock = listening_socket(host, port)
    url = url_of(host, sock.getsockname()[1])
    # uvicorn raises the signal again after an orderly shutdown.
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGINT, _exit)
    print(f"gcmem: serving MCP at {url}mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        app,
        # Of uvicorn's parsers, only this one limits the size of headers.
        http="h11",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    uvicorn.Server(config).run(sockets=[sock])


def _exit(_signal: int, _frame: object) -> NoReturn:
    sys.exit(0)


def _is_every_address(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host


class DirectOnly:
    """Lets only requests through that come directly from this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers 403 to all others."""
        if scope["type"] != "lifespan":
            try:
                check_is_direct(scope, remedy=f"ask for a token: {SET_A_TOKEN}")
            except ForbiddenError as error:
                body = {"error": "forbidden", "error_description": str(error)}
                await JSONResponse(body, status_code=403)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class BearerToken:
    """Lets only requests with the token through."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers 401 to all others."""
        if scope["type"] != "lifespan":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                refusal = JSONResponse(
                    {"error": "invalid_token", "error_description": "send the bearer token"},
                    status_code=401,
                    headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
