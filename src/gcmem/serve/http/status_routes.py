"""The state of the server and its oracle, and the caller's key."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, Response

from gcmem.errors import OverloadedError
from gcmem.judge.qualification import OPTIMAL_FROM, UNFIT_UP_TO
from gcmem.serve.http import reply_schemas as replies
from gcmem.serve.http.access import Caller
from gcmem.serve.http.metrics import CONTENT_TYPE_LATEST
from gcmem.serve.http.problems import responses
from gcmem.serve.http.service import Service, caller_of
from gcmem.serve.http.workers import Probe

READY_TIMEOUT_S = 3.0
ASKED = responses(401, 403, 429, 500, 503)

Asking = Annotated[Caller, Depends(caller_of)]


def caller_routes(service: Service) -> APIRouter:
    """Returns the routes that need a key but read no memories."""
    router = APIRouter(tags=["status"])
    waiting = Probe(service.count_waiting, timeout_s=READY_TIMEOUT_S)

    @router.get(
        "/v1/qualify", response_model=replies.QualifyReply, responses=ASKED, operation_id="qualify"
    )
    async def qualify(caller: Asking) -> Response:
        """Name the conflict oracle, its class, and the rule behind it."""
        return JSONResponse(
            {
                **service.oracle_json,
                "may_remove": service.memory.removes,
                "rule": {"unfit_at_or_below": UNFIT_UP_TO, "optimal_from": OPTIMAL_FROM},
            }
        )

    @router.get("/v1/whoami", response_model=replies.Whoami, responses=ASKED, operation_id="whoami")
    async def whoami(caller: Asking) -> Response:
        """Name the key of this request, and the scope it is bound to."""
        return JSONResponse(
            {
                "name": caller.name,
                "user_id": caller.scope.user_id,
                "agent_id": caller.scope.agent_id,
                "run_id": caller.scope.run_id,
                "read_only": caller.read_only,
                "untrusted": caller.untrusted,
            }
        )

    @router.get(
        "/metrics",
        response_class=Response,
        responses={
            **ASKED,
            200: {"description": "Prometheus text.", "content": {"text/plain": {}}},
        },
        operation_id="metrics",
    )
    async def metrics(caller: Asking) -> Response:
        """Show Prometheus metrics. They cover all scopes, so a bound key may not read them."""
        caller.check_is_unbound()
        with suppress(OverloadedError):  # a slow store must not hide the other figures
            await waiting.run()
        return Response(service.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    return router


def health_routes(service: Service) -> APIRouter:
    """Returns the routes that need no key."""
    router = APIRouter(tags=["status"])
    probe = Probe(service.check_ready, timeout_s=READY_TIMEOUT_S)

    @router.get(
        "/healthz", response_model=replies.Health, responses=responses(500), operation_id="healthz"
    )
    async def healthz() -> Response:
        """Say that the process answers; needs no key."""
        return JSONResponse({"status": "ok"})

    @router.get(
        "/readyz",
        response_model=replies.Health,
        responses=responses(500, 503),
        operation_id="readyz",
    )
    async def readyz() -> Response:
        """Say that the store is reachable and the models are loaded; needs no key."""
        await probe.run()
        return JSONResponse({"status": "ok"})

    return router
