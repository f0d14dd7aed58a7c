"""/v1/search, /v1/ask and /v1/resolve: what is still true."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gcmem.resolve.documents import DocumentResolution, resolve
from gcmem.serve.http import reply_schemas as replies
from gcmem.serve.http import request_schemas as requests
from gcmem.serve.http import telemetry
from gcmem.serve.http.access import Caller
from gcmem.serve.http.memory_routes import WRITE, fields
from gcmem.serve.http.rendering import answers_json, search_json
from gcmem.serve.http.service import Service, caller_of
from gcmem.serve.http.sizes import check_comparable, json_reply
from gcmem.storable import check_metadata
from gcmem.types import Answer, SearchResult

Asking = Annotated[Caller, Depends(caller_of)]


def query_routes(service: Service) -> APIRouter:
    """Returns the routes that find conflicts."""
    router = APIRouter(prefix="/v1", tags=["queries"])
    for define in (_define_search, _define_ask, _define_resolve):
        define(router, service)
    return router


def _define_search(router: APIRouter, service: Service) -> None:
    memory, spans, metrics = service.memory, service.spans, service.metrics

    @router.post(
        "/search", response_model=replies.SearchReply, responses=WRITE, operation_id="search"
    )
    async def search(body: requests.SearchRequest, request: Request, caller: Asking) -> Response:
        """Find what is still true, and what is not, with the newer memory that contradicts it."""
        scope = caller.narrow(body.asked_scope())
        with spans.open(
            "search_memory", headers=request.headers, query=body.query, agent_id=scope.agent_id
        ) as outcome:

            def find() -> tuple[SearchResult, bytes]:
                found = memory.search(
                    body.query,
                    **fields(scope),
                    k=body.k,
                    as_of=body.as_of,
                    known_at=body.known_at,
                    filters=body.filters,
                    mode=body.mode,
                    options=body.options,
                    view=body.view,
                )
                return found, search_json(found, oracle=service.oracle_json, limits=service.limits)

            result, reply = await service.run(find, caller=caller)
            outcome |= {
                telemetry.KEPT: len(result.kept),
                telemetry.SHADOWS: len(result.shadows),
            }
        metrics.observe_resolution(result, route="/v1/search", timings=result.timings)
        return json_reply(reply)


def _define_ask(router: APIRouter, service: Service) -> None:
    memory, spans, metrics = service.memory, service.spans, service.metrics

    @router.post("/ask", response_model=replies.AskReply, responses=WRITE, operation_id="ask")
    async def ask(body: requests.AskRequest, request: Request, caller: Asking) -> Response:
        """Answer a question by one or more paths over the same candidates."""
        scope = caller.narrow(body.asked_scope())
        with spans.open(
            "search_memory", headers=request.headers, query=body.question, agent_id=scope.agent_id
        ) as outcome:

            def answer() -> tuple[tuple[Answer, ...], bytes]:
                found = memory.ask_paths(
                    body.question,
                    **fields(scope),
                    options=body.options,
                    k=body.k,
                    as_of=body.as_of,
                    known_at=body.known_at,
                    filters=body.filters,
                    paths=body.paths,
                    mode=body.mode,
                    view=body.view,
                )
                return found, answers_json(found, limits=service.limits)

            answers, reply = await service.run(answer, caller=caller)
            found = next((a for a in answers if a.path == "gcmem"), answers[0])
            outcome |= {
                telemetry.KEPT: len(found.resolution.kept),
                telemetry.SHADOWS: len(found.resolution.shadows),
            }
        metrics.observe_resolution(found.resolution, route="/v1/ask", timings=found.timings)
        return json_reply(reply)


def _define_resolve(router: APIRouter, service: Service) -> None:
    @router.post(
        "/resolve", response_model=replies.ResolveReply, responses=WRITE, operation_id="resolve"
    )
    async def resolve_documents(body: requests.ResolveRequest, caller: Asking) -> Response:
        """Split documents into those that are still true and those that a newer one contradicts.

        Nothing is stored.
        """
        for document in body.documents:
            check_metadata(document.model_extra or {})  # it is sent back, so it must be JSON
        documents = [d.model_dump(mode="json", exclude_none=True) for d in body.documents]
        check_comparable(documents, limits=service.limits)
        found = await service.run(
            partial(
                resolve,
                documents,
                query=body.query,
                oracle=service.resolver,
                options=body.options,
                require_qualified=not service.memory.removes,
            ),
            caller=caller,
        )
        return JSONResponse(_resolution_json(found))


def _resolution_json(found: DocumentResolution[dict[str, Any]]) -> dict[str, Any]:
    return {
        "kept": list(found.kept),
        "shadows": [
            {
                "document": shadow.document,
                "witness": shadow.witness,
                "score": shadow.conflict.score,
                "oracle": shadow.conflict.oracle,
            }
            for shadow in found.shadows
        ],
        "undecided": [list(pair) for pair in found.undecided],
    }
