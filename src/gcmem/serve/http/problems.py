"""Errors as problem details (RFC 9457): one table from gcmem's errors to statuses."""

from __future__ import annotations

import http
import math
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from gcmem.errors import (
    AbandonedError,
    ChunkNotFoundError,
    DeadlineExceededError,
    EncoderError,
    ForbiddenError,
    GCMemError,
    InvalidInputError,
    MissingExtraError,
    ModelError,
    NotAuthenticatedError,
    OverloadedError,
    RateLimitedError,
    ServeError,
    StoppingError,
    StoreError,
    TrustError,
)

MEDIA_TYPE = "application/problem+json"
STATUSES: tuple[tuple[type[GCMemError], int], ...] = (
    (InvalidInputError, 422),
    (ChunkNotFoundError, 404),
    (NotAuthenticatedError, 401),
    (ForbiddenError, 403),
    (TrustError, 403),
    (RateLimitedError, 429),
    (DeadlineExceededError, 504),
    (AbandonedError, 503),  # logged only: nobody is there to read it
    (OverloadedError, 503),
    (ServeError, 503),
    (StoreError, 503),
    (ModelError, 503),
    (EncoderError, 503),
    (MissingExtraError, 503),
)
"""The first class that matches decides."""
DESCRIPTIONS = {
    400: "The body is not JSON, or is nested too deeply.",
    401: "There is no API key, or it is unknown or revoked.",
    403: "The key may not do this, or not in this scope.",
    404: "There is no such memory in the key's scope.",
    405: "The path exists, but not with this method.",
    408: "The body took too long to arrive.",
    413: "The body is larger than the server accepts.",
    415: "The body is not declared as application/json.",
    422: "The request is well-formed, but a value can't be used.",
    429: "The key made too many requests; Retry-After says when to try again.",
    500: "An error in the server; find it in the logs by the request id.",
    503: "The store or a model can't be reached, too many requests wait, or the server stops.",
    504: "The work took longer than the server allows, and was stopped.",
}


class FieldError(BaseModel):
    """Where in the request a value can't be used, and why."""

    at: str = Field(examples=["body.k"])
    message: str = Field(examples=["Input should be less than or equal to 100"])


class Problem(BaseModel):
    """What went wrong, for programs (`type`, `status`) and for people (`title`, `detail`)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:gcmem:problem:ForbiddenError",
                    "title": "Forbidden",
                    "status": 403,
                    "detail": "this key is bound to user_id='ana'; leave user_id out, or pass "
                    "that one",
                    "request_id": "0f8fad5bd9cb469fa16570867728950e",
                }
            ]
        }
    )

    type: str = Field(description="A URN that names the kind of error; it does not change.")
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldError] | None = Field(None, description="For 422: field by field.")


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Returns the declaration of error replies for an operation."""
    declared: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        declared[status] = {
            "description": DESCRIPTIONS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        if status in (429, 503):
            declared[status]["headers"] = {
                "Retry-After": {
                    "description": "Seconds to wait; absent if waiting won't help.",
                    "schema": {"type": "integer"},
                }
            }
    return declared


def status_of(error: GCMemError) -> int:
    """Returns the HTTP status of an error."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def reply(
    status: int,
    *,
    kind: str,
    detail: str,
    request_id: str,
    headers: Mapping[str, str] | None = None,
    errors: list[dict[str, str]] | None = None,
) -> JSONResponse:
    """Returns the problem as a response."""
    body: dict[str, Any] = {
        "type": f"urn:gcmem:problem:{kind}",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": request_id,
    }
    if errors is not None:
        body["errors"] = errors
    return JSONResponse(body, status, headers=headers, media_type=MEDIA_TYPE)


def from_error(error: GCMemError, *, request_id: str) -> JSONResponse:
    """Returns the reply to one of gcmem's errors."""
    headers = {}
    if isinstance(error, RateLimitedError):
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    elif isinstance(error, OverloadedError):
        headers["Retry-After"] = "1"
    elif isinstance(error, StoppingError):
        headers |= {"Retry-After": "5", "Connection": "close"}
    elif isinstance(error, NotAuthenticatedError):
        headers["WWW-Authenticate"] = 'Bearer realm="gcmem"'
    return reply(
        status_of(error),
        kind=type(error).__name__,
        detail=printable(str(error)),
        request_id=request_id,
        headers=headers,
    )


def printable(text: str) -> str:
    """Returns the text with lone surrogates escaped: UTF-8 can't encode them."""
    return text.encode("utf-8", "backslashreplace").decode()


def request_id_of(request: Request) -> str:
    """Returns the id that the outermost layer gave to the request."""
    return str(getattr(request.state, "request_id", ""))


async def on_gcmem_error(request: Request, error: Exception) -> JSONResponse:
    """Handles every GCMemError that a route raises."""
    assert isinstance(error, GCMemError)
    return from_error(error, request_id=request_id_of(request))


async def on_invalid_request(request: Request, error: Exception) -> JSONResponse:
    """Handles what the schema refuses; the values themselves are not sent back."""
    assert isinstance(error, RequestValidationError)
    found = [
        {
            "at": printable(".".join(str(part) for part in item["loc"])),
            "message": printable(str(item["msg"])),
        }
        for item in error.errors()
    ]
    malformed = any(item["type"] == "json_invalid" for item in error.errors())
    return reply(
        400 if malformed else 422,
        kind="MalformedBody" if malformed else "InvalidRequest",
        detail="; ".join(f"{item['at']}: {item['message']}" for item in found[:3]),
        request_id=request_id_of(request),
        errors=None if malformed else found,
    )


async def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """Handles the framework's own errors: unknown paths and methods, unreadable bodies."""
    assert isinstance(error, HTTPException)
    return reply(
        error.status_code,
        kind=http.HTTPStatus(error.status_code).phrase.title().replace(" ", ""),
        detail=str(error.detail),
        request_id=request_id_of(request),
        headers=error.headers,
    )
