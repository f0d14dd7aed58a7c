"""The REST application: a Memory behind keys and limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from gcmem import __version__
from gcmem.errors import GCMemError
from gcmem.judge.fitness import fitness_of
from gcmem.memory import Memory
from gcmem.protocols import ConflictOracle
from gcmem.serve import web
from gcmem.serve.http import problems
from gcmem.serve.http.layers import Admission, BodyReader, Observer, Watcher
from gcmem.serve.http.limits import Limits
from gcmem.serve.http.logs import LOGGER
from gcmem.serve.http.memory_routes import memory_routes
from gcmem.serve.http.metrics import Metrics
from gcmem.serve.http.query_routes import query_routes
from gcmem.serve.http.service import Service, judge_of, resolver_for
from gcmem.serve.http.status_routes import caller_routes, health_routes
from gcmem.serve.http.telemetry import Spans
from gcmem.serve.http.turns import Turns
from gcmem.serve.http.verdict_routes import verdict_routes
from gcmem.serve.http.workers import Workers
from gcmem.serve.keys import KeyStore

DESCRIPTION = """Memory for agents that knows which facts are still true.

A key (`Authorization: Bearer gcm_…`) is bound to a scope: a request that leaves `user_id`,
`agent_id` or `run_id` out gets the key's, a request that names another is refused, and ids of
other scopes are not found. Errors are problem details with the id of the request."""


def make_app(
    memory: Memory,
    *,
    keys: KeyStore | None = None,
    limits: Limits | None = None,
    metrics: Metrics | None = None,
    resolver: ConflictOracle | None = None,
    store_name: str = "gcmem",
    log_contents: bool = False,
) -> FastAPI:
    """Returns the application over a memory, which it closes when it stops.

    Without `keys`, or while there are none, it answers only requests that come directly from this
    machine. Once there is a key, every request needs one until the application stops.
    `resolver` judges the documents of /v1/resolve; it must not cache verdicts by id.
    """
    limits = limits or Limits()
    metrics = metrics or Metrics()
    if keys is not None:
        _ = keys.required  # read now: the file may be gone when the first request comes
    service = Service(
        memory=memory,
        resolver=resolver or resolver_for(memory),
        workers=Workers(
            threads=limits.threads,
            waiting=limits.waiting,
            waiting_per_caller=limits.waiting_per_caller,
        ),
        limits=limits,
        metrics=metrics,
        spans=Spans(store_id=store_name, contents=log_contents),
        fitness=fitness_of(judge_of(memory).id, memory.qualification),
    )
    if memory.store.ledger is not None:
        memory.judging.observer = metrics.observe_judging
    app = FastAPI(
        title="gcmem",
        version=__version__,
        description=DESCRIPTION,
        lifespan=_lifespan(service, keys),
        redirect_slashes=False,
        # The framework's pages load third-party scripts into the origin where keys are used.
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key: gcm_…")
    app.include_router(memory_routes(service), dependencies=[Depends(bearer)])
    app.include_router(query_routes(service), dependencies=[Depends(bearer)])
    app.include_router(verdict_routes(service), dependencies=[Depends(bearer)])
    app.include_router(caller_routes(service), dependencies=[Depends(bearer)])
    app.include_router(health_routes(service))
    web.mount(app)
    app.add_exception_handler(GCMemError, problems.on_gcmem_error)
    app.add_exception_handler(RequestValidationError, problems.on_invalid_request)
    app.add_exception_handler(HTTPException, problems.on_http_error)
    # The last one added is the outermost.
    turns = Turns(active=lambda: service.workers.active_callers)
    app.add_middleware(Watcher, limits=limits, turns=turns)
    app.add_middleware(BodyReader, limits=limits)
    app.add_middleware(Admission, keys=keys, limits=limits)
    app.add_middleware(Observer, metrics=metrics, log_contents=log_contents)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _lifespan(service: Service, keys: KeyStore | None) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Requests are accepted meanwhile; /readyz says when the models are loaded.
        warming = asyncio.create_task(_warm_up(service))
        try:
            yield
        finally:
            await asyncio.gather(warming, return_exceptions=True)
            # In a thread: an accepted write may take a moment, and must be finished.
            await asyncio.to_thread(service.workers.close)
            service.memory.close()
            if keys is not None:
                keys.close()

    return lifespan


async def _warm_up(service: Service) -> None:
    try:
        await service.warm_up()
    except Exception as error:
        LOGGER.error("not ready", exc_info=error)
    else:
        LOGGER.info("ready")


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Returns the schema, with the problems and request ids that FastAPI does not know."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        components = schema.setdefault("components", {}).setdefault("schemas", {})
        problem = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        components |= problem.pop("$defs", {}) | {"Problem": problem}
        request_id = {
            "description": "The request's id, as in the logs; an id that the client sends is kept.",
            "schema": {"type": "string"},
        }
        for operations in schema["paths"].values():
            for operation in operations.values():
                if "security" in operation:
                    operation["security"].append({})  # a server without keys asks for none
                for response in operation["responses"].values():
                    response.setdefault("headers", {})["X-Request-Id"] = request_id
        app.openapi_schema = schema
    return app.openapi_schema
