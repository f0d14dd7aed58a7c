"""/v1/memories and /v1/history: what is stored."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gcmem.errors import ForbiddenError, InvalidInputError
from gcmem.ingest import Message
from gcmem.memory import Memory
from gcmem.outdated import what_is_known
from gcmem.serve.http import reply_schemas as replies
from gcmem.serve.http import request_schemas as requests
from gcmem.serve.http import telemetry
from gcmem.serve.http.access import Caller
from gcmem.serve.http.cursors import cursor_of, place_of
from gcmem.serve.http.problems import responses
from gcmem.serve.http.rendering import chunk_json, known_json
from gcmem.serve.http.service import Service, caller_of
from gcmem.serve.http.sizes import Room, check_stored, json_object, json_reply
from gcmem.serve.http.timeline import Page, page_of
from gcmem.types import TRUSTED, UNTRUSTED, Chunk, ChunkFilter, Scope

READ = responses(401, 403, 422, 429, 500, 503, 504)
WRITE = responses(400, 401, 403, 408, 413, 415, 422, 429, 500, 503, 504)
ITEM = responses(401, 403, 404, 422, 429, 500, 503, 504)
STILL_ERASING: dict[int | str, dict[str, Any]] = {
    202: {
        "model": replies.Forgotten,
        "description": "Erased, but bytes stay on disk while another process reads the store.",
    }
}

Asking = Annotated[Caller, Depends(caller_of)]
MemoryId = Annotated[str, Path(max_length=100, description="The id of a memory.")]


def memory_routes(service: Service) -> APIRouter:
    """Returns the routes over stored memories."""
    router = APIRouter(prefix="/v1", tags=["memories"])
    for define in (
        _define_add,
        _define_list,
        _define_forget,
        _define_get,
        _define_delete,
        _define_history,
    ):
        define(router, service)
    return router


def _define_add(router: APIRouter, service: Service) -> None:
    memory, spans = service.memory, service.spans

    @router.post(
        "/memories",
        status_code=201,
        response_model=replies.Memories,
        responses=WRITE,
        operation_id="add_memories",
    )
    async def add(body: requests.AddRequest, request: Request, caller: Asking) -> Response:
        """Remember messages. A reply of 201 means that all are on disk; an error, that none is."""
        caller.check_may_write()
        scope = caller.narrow(body.asked_scope())
        with spans.open(
            "upsert_memory",
            headers=request.headers,
            agent_id=scope.agent_id,
            session=body.session or scope.run_id,
        ) as outcome:

            def store() -> tuple[Chunk, ...]:
                check_stored(body, memory=memory, limits=service.limits)
                return memory.add(
                    messages_of(body),
                    **fields(scope),
                    at=body.at,
                    session=body.session,
                    metadata=body.metadata,
                    trust=UNTRUSTED if caller.untrusted else TRUSTED,
                )

            chunks = await service.run(store, caller=caller)
            outcome[telemetry.CHUNKS] = len(chunks)
        service.metrics.added.inc(len(chunks))
        return JSONResponse({"memories": [chunk_json(chunk) for chunk in chunks]}, 201)


def _define_list(router: APIRouter, service: Service) -> None:
    memory = service.memory

    @router.get(
        "/memories", response_model=replies.MemoryPage, responses=READ, operation_id="list_memories"
    )
    async def list_all(query: Annotated[requests.ListQuery, Query()], caller: Asking) -> Response:
        """List memories in the order in which they were recorded."""
        scope = caller.narrow(query.asked_scope())
        if query.after_seq and caller.is_bound:
            raise ForbiddenError("this key is bound to a scope: continue with `cursor`")

        def page() -> bytes:
            chunks = _listed(memory, query, scope=scope)
            shown = Room(service.limits).page([chunk_json(c) for c in chunks[: query.limit]])
            more = len(chunks) > len(shown)
            last = chunks[len(shown) - 1] if more else None
            return json_object(
                {
                    "memories": shown,
                    "next": cursor_of(last, chunks[len(shown)]) if last else None,
                    "next_after_seq": last.seq if last and not caller.is_bound else None,
                }
            )

        return json_reply(await service.run(page, caller=caller))


def _define_forget(router: APIRouter, service: Service) -> None:
    memory, spans = service.memory, service.spans

    @router.delete(
        "/memories",
        response_model=replies.Forgotten,
        responses={**READ, **STILL_ERASING},
        operation_id="forget_memories",
    )
    async def forget(
        query: Annotated[requests.ItemQuery, Query()], request: Request, caller: Asking
    ) -> Response:
        """Permanently erase all memories of a user, an agent or a run; one must be named.

        An untrusted key erases only untrusted memories; `left` counts the others.
        """
        caller.check_may_write()
        asked = query.asked_scope()
        scope = caller.narrow(asked)
        # The key's scope is not enough: an empty request must not erase everything.
        meant = scope if asked != Scope() else asked
        erase = partial(memory.forget, **fields(meant), max_trust=caller.max_trust)
        with spans.open("delete_memory", headers=request.headers, agent_id=scope.agent_id):
            count = await service.run(erase, caller=caller)
            erasing = await service.run(memory.erasing, caller=caller) if count else None
        left = 0
        if caller.max_trust is not None:
            count_left = partial(memory.store.log.count, ChunkFilter(scope=meant))
            left = await service.run(count_left, caller=caller)
        reply = {"forgotten": count, "left": left, "erasing": erasing}
        return JSONResponse(reply, 202 if erasing else 200)


def _define_get(router: APIRouter, service: Service) -> None:
    memory = service.memory

    @router.get(
        "/memories/{memory_id}",
        response_model=replies.KnownChunk,
        responses=ITEM,
        operation_id="get_memory",
    )
    async def get(
        memory_id: MemoryId, query: Annotated[requests.ItemQuery, Query()], caller: Asking
    ) -> Response:
        """Return one memory, with what is known about it."""
        scope = caller.narrow(query.asked_scope())

        def find() -> dict[str, Any]:
            chunk = memory.get(memory_id, **fields(scope))
            known = what_is_known(memory, [chunk], where=ChunkFilter(scope=scope))
            return known_json(chunk, known)

        return JSONResponse(await service.run(find, caller=caller))


def _define_delete(router: APIRouter, service: Service) -> None:
    memory, spans = service.memory, service.spans

    @router.delete(
        "/memories/{memory_id}",
        status_code=204,
        responses={**ITEM, **STILL_ERASING},
        operation_id="delete_memory",
    )
    async def delete(
        memory_id: MemoryId,
        query: Annotated[requests.ItemQuery, Query()],
        request: Request,
        caller: Asking,
    ) -> Response:
        """Permanently erase one memory."""
        caller.check_may_write()
        scope = caller.narrow(query.asked_scope())
        with spans.open("delete_memory", headers=request.headers, record_id=memory_id):
            erase = partial(memory.delete, memory_id, **fields(scope), max_trust=caller.max_trust)
            await service.run(erase, caller=caller)
            erasing = await service.run(memory.erasing, caller=caller)
        if erasing:
            return JSONResponse({"forgotten": 1, "left": 0, "erasing": erasing}, 202)
        return Response(status_code=204)


def _define_history(router: APIRouter, service: Service) -> None:
    memory = service.memory

    @router.get(
        "/history", response_model=replies.Timeline, responses=READ, operation_id="list_history"
    )
    async def history(query: Annotated[requests.HistoryQuery, Query()], caller: Asking) -> Response:
        """Show the timeline by event time. A memory known to be outdated names its witness."""
        where = ChunkFilter(
            scope=caller.narrow(query.asked_scope()), as_of=query.as_of, known_at=query.known_at
        )

        def page() -> bytes:
            found = page_of(
                memory,
                where,
                newest_first=query.newest_first,
                limit=query.limit,
                before=query.before,
            )
            return _timeline_json(found, room=Room(service.limits))

        return json_reply(await service.run(page, caller=caller))


def _listed(memory: Memory, query: requests.ListQuery, *, scope: Scope) -> tuple[Chunk, ...]:
    """Returns a page in recording order, plus one memory if there are more."""
    after_seq = query.after_seq
    if query.cursor is not None:
        if after_seq:
            raise InvalidInputError("pass `cursor` or `after_seq`, not both")
        chunk, begins = place_of(query.cursor, memory, scope=scope)
        after_seq = (chunk.seq or 0) - int(begins)
    return memory.get_all(**fields(scope), after_seq=after_seq, limit=query.limit + 1)


def fields(scope: Scope) -> dict[str, Any]:
    """Returns a scope as Memory's arguments."""
    return {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}


def messages_of(body: requests.AddRequest) -> Message | list[Message]:
    """Returns the messages as Memory.add takes them."""
    if isinstance(body.messages, str):
        return body.messages
    return [
        message if isinstance(message, str) else message.model_dump(exclude_none=True)
        for message in body.messages
    ]


def _timeline_json(page: Page, *, room: Room) -> bytes:
    memories = [known_json(chunk, page.known) for chunk in page.chunks]
    shown = room.page(memories)
    following = page.next
    if len(shown) < len(memories):
        following = cursor_of(page.chunks[len(shown) - 1], page.chunks[len(shown)])
    return json_object({"memories": shown, "next": following})
