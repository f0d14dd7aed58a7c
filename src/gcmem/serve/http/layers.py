"""The middleware around the routes, outermost first: logs, keys, bodies, deadlines."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from contextlib import suppress
from functools import partial
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gcmem.deadline import Deadline, within
from gcmem.errors import AbandonedError, GCMemError, StoppingError
from gcmem.serve.http import problems
from gcmem.serve.http.access import identify
from gcmem.serve.http.limits import Limits, TokenBuckets, is_too_deep
from gcmem.serve.http.logs import LOGGER
from gcmem.serve.http.metrics import Metrics
from gcmem.serve.http.rendering import shows_seq
from gcmem.serve.http.turns import Turns
from gcmem.serve.keys import KeyStore

PROTECTED = ("/v1", "/mcp", "/metrics")
"""Paths that need a key once there are keys."""
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
LOGGED_CHARS = 2000


def is_protected(path: str) -> bool:
    """Tells whether a path needs a key; routes check again that a caller is known."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in PROTECTED)


class Observer:
    """Gives every request an id, counts and logs it, and turns a crash into a problem."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, log_contents: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._log_contents = log_contents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        status = 0

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                if is_protected(scope["path"]):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        started = time.perf_counter()
        self._metrics.in_flight.inc()
        try:
            await self._app(scope, receive, send_observed)
        except asyncio.CancelledError:
            # The grace period is over. The client still gets a reply.
            if status:
                raise
            stopped = StoppingError("the server was stopped before this was done; try again")
            await problems.from_error(stopped, request_id=request_id)(scope, receive, send_observed)
        except Exception as error:
            LOGGER.error("crash", exc_info=error, extra={"fields": {"request_id": request_id}})
            if status:
                raise  # half of a reply is sent: the connection can only be dropped
            reply = problems.reply(
                500,
                kind="InternalError",
                detail="an error in the server; find it in the logs by this request id",
                request_id=request_id,
            )
            await reply(scope, receive, send_observed)
        finally:
            self._metrics.in_flight.dec()
            self._finish(scope, status=status, spent_s=time.perf_counter() - started)

    def _finish(self, scope: Scope, *, status: int, spent_s: float) -> None:
        state = scope["state"]
        # The route's pattern, not the path: each id would make a new label.
        route = getattr(scope.get("route"), "path", None) or "(none)"
        self._metrics.requests.labels(route, _method(scope), str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(spent_s)
        caller = state.get("caller")
        fields: dict[str, Any] = {
            "request_id": state["request_id"],
            "method": _method(scope),
            "route": route,
            "status": status,
            "ms": round(spent_s * 1000, 2),
            "key": None if caller is None else caller.name,
        }
        if self._log_contents:
            fields["body"] = state.get("body", b"").decode("utf-8", "replace")[:LOGGED_CHARS]
        LOGGER.info("request", extra={"fields": fields})


def _method(scope: Scope) -> str:
    known = ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH")
    return scope["method"] if scope["method"] in known else "OTHER"


class Admission:
    """Checks the key and the rate of each request."""

    def __init__(self, app: ASGIApp, *, keys: KeyStore | None, limits: Limits) -> None:
        self._app = app
        self._keys = keys
        self._buckets = TokenBuckets(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or refuses it before its body is read."""
        if scope["type"] == "http" and is_protected(scope["path"]):
            state = scope["state"]
            try:
                caller = identify(scope, self._keys)
                state["caller"] = caller
                shows_seq.set(not caller.is_bound)
                self._buckets.take(caller.id)
            except GCMemError as error:
                reply = problems.from_error(error, request_id=state["request_id"])
                if _has_body(Headers(scope=scope)):
                    reply.headers["Connection"] = "close"  # the body is on its way, unread
                await reply(scope, receive, send)
                return
        await self._app(scope, receive, send)


class BodyReader:
    """Reads the body whole, within limits of size, time and nesting, before a route sees it."""

    def __init__(self, app: ASGIApp, *, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except _RefusedError as refused:
            reply = problems.reply(
                refused.status,
                kind=refused.kind,
                detail=refused.detail,
                request_id=scope["state"]["request_id"],
                headers={"Connection": "close"} if refused.status in (408, 413) else None,
            )
            await reply(scope, receive, send)
            return
        if body is None:
            return  # the client went away
        scope["state"]["body"] = body
        replayed = False

        async def receive_again() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, receive_again, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        headers = Headers(scope=scope)
        declared = headers.get("content-length", "")
        if declared.isdigit() and len(declared) < 20 and int(declared) > self._limits.body_bytes:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._limits.body_timeout_s):
                body = await self._collect(receive)
        except TimeoutError:
            raise _RefusedError(
                408,
                "BodyTimeout",
                f"the body took longer than {self._limits.body_timeout_s:g} s; send it faster",
            ) from None
        if not body or not scope["path"].startswith("/v1/"):
            return body
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            # Browsers send other types to other sites without a preflight request.
            raise _RefusedError(
                415, "UnsupportedMediaType", "send JSON, with Content-Type: application/json"
            )
        if is_too_deep(body, depth=self._limits.depth):
            raise _RefusedError(
                400,
                "MalformedBody",
                f"the JSON is nested deeper than {self._limits.depth}, or its brackets don't match",
            )
        return body

    async def _collect(self, receive: Receive) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size > self._limits.body_bytes:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> _RefusedError:
        return _RefusedError(
            413,
            "BodyTooLarge",
            f"at most {self._limits.body_bytes} bytes per request; send several",
        )


class Watcher:
    """Gives a request its deadline and its turns, and stops its work when the client leaves.

    A write that has begun is still finished; one that waits for a thread is dropped.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits, turns: Turns) -> None:
        self._app = app
        self._limits = limits
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; one whose client has left gets no reply."""
        if scope["type"] != "http" or not is_protected(scope["path"]):
            await self._app(scope, receive, send)
            return
        deadline = Deadline(
            self._limits.request_timeout_s, turn=partial(self._turns.take, _caller_id(scope))
        )
        messages: asyncio.Queue[Message] = asyncio.Queue()
        has_left = False

        async def watch() -> None:
            nonlocal has_left
            while not has_left:
                message = await receive()
                has_left = message["type"] == "http.disconnect"
                messages.put_nowait(message)
            deadline.cancel(AbandonedError("the client has left"))

        async def send_if_connected(message: Message) -> None:
            if not has_left:
                await send(message)

        watching = asyncio.create_task(watch())
        try:
            with within(deadline):
                await self._app(scope, messages.get, send_if_connected)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


def _caller_id(scope: Scope) -> str:
    caller = scope["state"].get("caller")
    return "" if caller is None else caller.id


class _RefusedError(Exception):
    """A body that is refused, and why."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
