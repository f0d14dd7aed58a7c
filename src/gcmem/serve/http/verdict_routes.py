"""/v1/verdicts, /v1/current and pins: what people say about memories, and what still stands."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gcmem.serve.http import reply_schemas as replies
from gcmem.serve.http import request_schemas as requests
from gcmem.serve.http.access import Caller
from gcmem.serve.http.current import ClaimPage, current_page
from gcmem.serve.http.memory_routes import READ, WRITE, Asking, MemoryId
from gcmem.serve.http.problems import responses
from gcmem.serve.http.rendering import claim_json, verdict_json
from gcmem.serve.http.service import Service
from gcmem.serve.http.sizes import Room, json_object, json_reply
from gcmem.serve.http.word import ANYBODY, Speaker, say, set_pin
from gcmem.types import Scope

WORD = {**WRITE, **responses(404)}


def verdict_routes(service: Service) -> APIRouter:
    """Returns the routes over verdicts and what follows from them."""
    router = APIRouter(prefix="/v1", tags=["verdicts"])
    for define in (_define_pin, _define_unpin, _define_say, _define_current):
        define(router, service)
    return router


def _define_pin(router: APIRouter, service: Service) -> None:
    @router.post(
        "/memories/{memory_id}/pin", status_code=204, responses=WORD, operation_id="pin_memory"
    )
    async def pin(
        memory_id: MemoryId,
        query: Annotated[requests.ItemQuery, Query()],
        request: Request,
        caller: Asking,
        body: requests.PinRequest | None = None,
    ) -> Response:
        """Keep a memory in every result, whatever contradicts it."""
        return await _pin(service, memory_id, query, body, request, caller, pinned=True)


def _define_unpin(router: APIRouter, service: Service) -> None:
    @router.delete(
        "/memories/{memory_id}/pin", status_code=204, responses=WORD, operation_id="unpin_memory"
    )
    async def unpin(
        memory_id: MemoryId,
        query: Annotated[requests.ItemQuery, Query()],
        request: Request,
        caller: Asking,
        body: requests.PinRequest | None = None,
    ) -> Response:
        """Take a pin back."""
        return await _pin(service, memory_id, query, body, request, caller, pinned=False)


async def _pin(
    service: Service,
    memory_id: str,
    query: requests.ItemQuery,
    body: requests.PinRequest | None,
    request: Request,
    caller: Caller,
    *,
    pinned: bool,
) -> Response:
    caller.check_may_write()
    speaker = _speaker(caller, query.asked_scope(), by=None if body is None else body.by)
    change = partial(set_pin, service.memory, memory_id, pinned=pinned, speaker=speaker)
    with service.spans.open("update_memory", headers=request.headers, record_id=memory_id):
        await service.run(change, caller=caller)
    return Response(status_code=204)


def _define_say(router: APIRouter, service: Service) -> None:
    @router.post(
        "/verdicts",
        status_code=201,
        response_model=replies.VerdictOut,
        responses=WORD,
        operation_id="say_verdict",
    )
    async def verdict(body: requests.VerdictRequest, request: Request, caller: Asking) -> Response:
        """Say whether one memory ended another. Outranks every model, also later ones.

        An untrusted key may speak about untrusted memories only.
        """
        caller.check_may_write()
        record = partial(
            say,
            service.memory,
            body.word,
            body.older,
            body.newer,
            reason=body.reason,
            speaker=_speaker(caller, body.asked_scope(), by=body.by),
        )
        with service.spans.open("update_memory", headers=request.headers, record_id=body.older):
            said = await service.run(record, caller=caller)
        return JSONResponse(verdict_json(said), 201)


def _define_current(router: APIRouter, service: Service) -> None:
    @router.get(
        "/current", response_model=replies.ClaimPage, responses=READ, operation_id="list_current"
    )
    async def current(query: Annotated[requests.CurrentQuery, Query()], caller: Asking) -> Response:
        """List the claims that still stand, newest first; no question needed."""
        scope = caller.narrow(query.asked_scope())

        def page() -> bytes:
            found = current_page(
                service.memory,
                scope=scope,
                limit=query.limit,
                cursor=query.cursor,
                as_of=query.as_of,
            )
            return _claims_json(found, room=Room(service.limits))

        return json_reply(await service.run(page, caller=caller))


def _speaker(caller: Caller, asked: Scope, *, by: str | None) -> Speaker:
    return Speaker(
        by=by or caller.name or ANYBODY, scope=caller.narrow(asked), max_trust=caller.max_trust
    )


def _claims_json(page: ClaimPage, *, room: Room) -> bytes:
    shown = room.page([claim_json(claim) for claim in page.claims])
    cut = page.cut(len(shown))
    return json_object({"claims": shown, "next": cut.next, "pending": cut.pending})
