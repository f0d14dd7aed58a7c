"""The endpoints that the dashboard needs, after the contract, until the REST app is there."""

from __future__ import annotations

import itertools
import secrets
import sqlite3
from dataclasses import asdict
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse

from gcmem import Memory
from gcmem.errors import GCMemError
from gcmem.qualify import GOOD, LEAST, recall_verdict
from gcmem.types import Candidate, Chunk, ChunkFilter, Scope, Shadow


class StandInKeys:
    """Keys by secret, with the two methods that the tests use."""

    def __init__(self) -> None:
        self._keys: dict[str, Any] = {}

    def create(self, name: str, *, scope: Scope) -> tuple[Any, str]:
        key = SimpleNamespace(name=name, scope=scope)
        secret = f"gcm_{secrets.token_hex(4)}_x"
        self._keys[secret] = key
        return key, secret

    def find(self, secret: str) -> Any:
        return self._keys.get(secret)


def chunk_json(chunk: Chunk) -> dict[str, Any]:
    at, recorded_at = chunk.at, chunk.recorded_at
    return {
        "id": chunk.id,
        "text": chunk.text,
        "at": at and at.isoformat(),
        "recorded_at": recorded_at and recorded_at.isoformat(),
        "seq": chunk.seq,
        **asdict(chunk.scope),
        "speaker": chunk.speaker,
        "session": chunk.session,
        "metadata": dict(chunk.metadata),
    }


def candidate_json(item: Candidate) -> dict[str, Any]:
    return {
        "memory": chunk_json(item.chunk),
        "relevance": float(item.relevance),
        "origin": item.origin,
    }


def shadow_json(shadow: Shadow) -> dict[str, Any]:
    return {
        "candidate": candidate_json(shadow.candidate),
        "witness": candidate_json(shadow.witness),
        "conflict": asdict(shadow.conflict),
    }


def make_app(memory: Memory, *, keys: StandInKeys | None = None) -> FastAPI:
    """Serves what the dashboard asks for."""
    app = FastAPI()

    def caller(request: Request) -> Any:
        if keys is None:
            return SimpleNamespace(name=None, scope=Scope())
        key = keys.find(request.headers.get("authorization", "").removeprefix("Bearer "))
        if key is None:
            raise HTTPException(401, "pass an API key; it is missing, unknown or revoked")
        return key

    @app.exception_handler(HTTPException)
    async def problem(_request: Request, error: HTTPException) -> JSONResponse:
        title = {401: "Not authenticated"}.get(error.status_code, "Error")
        return _problem(error.status_code, title, str(error.detail))

    @app.exception_handler(GCMemError)
    async def bad_input(_request: Request, error: GCMemError) -> JSONResponse:
        return _problem(422, "Invalid input", str(error))

    @app.get("/v1/whoami")
    def whoami(request: Request) -> dict[str, Any]:
        key = caller(request)
        return {"name": key.name, **asdict(key.scope), "read_only": False, "untrusted": False}

    @app.get("/v1/qualify")
    def qualify(request: Request) -> dict[str, Any]:
        caller(request)
        found = recall_verdict(memory.oracle.id)
        rule = {"unfit_up_to": LEAST, "optimal_from": GOOD}
        may_remove = found in ("optimal", "marginal")
        return {"id": memory.oracle.id, "class": found, "may_remove": may_remove, "rule": rule}

    @app.get("/v1/memories/{chunk_id}")
    def get(chunk_id: str, request: Request) -> dict[str, Any]:
        caller(request)
        return chunk_json(memory.get(chunk_id))

    @app.get("/v1/history")
    def history(
        request: Request,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: datetime | None = None,
        newest_first: bool = False,
        limit: int = 100,
        before: str | None = None,
    ) -> dict[str, Any]:
        key = caller(request)
        asked = Scope(user_id=key.scope.user_id or user_id, agent_id=agent_id, run_id=run_id)
        where = ChunkFilter(scope=asked, as_of=as_of)
        page = _page(memory, where, newest_first=newest_first, limit=limit + 1, before=before)
        more, page = len(page) > limit, page[:limit]
        shadowed = _shadowed_by(memory, page, where)
        last = page[-1] if more else None
        return {
            "memories": [{**chunk_json(c), "shadowed_by": shadowed.get(c.id)} for c in page],
            "next": last and last.at and f"{last.at.isoformat()}|{last.seq}",
        }

    @app.post("/v1/ask")
    def ask(body: dict[str, Any], request: Request) -> dict[str, Any]:
        key = caller(request)
        answers = memory.ask_paths(
            body["question"],
            user_id=key.scope.user_id or body.get("user_id"),
            options=body.get("options", ()),
            k=body.get("k", 10),
            as_of=datetime.fromisoformat(body["as_of"]) if body.get("as_of") else None,
            paths=body.get("paths", ["gcmem"]),
            mode=body.get("mode", "allow-unclear"),
        )
        return {
            "answers": [
                {
                    "path": answer.path,
                    "text": answer.text,
                    "choice": answer.choice,
                    "kept": [item.chunk.id for item in answer.resolution.kept],
                    "shadows": [shadow_json(s) for s in answer.resolution.shadows],
                }
                for answer in answers
            ],
            "candidates": [candidate_json(item) for item in answers[0].resolution.kept],
            "timings_ms": {
                **{n.removesuffix("_ms"): ms for n, ms in asdict(answers[0].timings).items()},
                "total": answers[0].timings.total_ms,
            },
        }

    return app


def _problem(status: int, title: str, detail: str) -> JSONResponse:
    body = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "request_id": "req-1",
    }
    return JSONResponse(body, status, media_type="application/problem+json")


def _page(
    memory: Memory, where: ChunkFilter, *, newest_first: bool, limit: int, before: str | None
) -> list[Chunk]:
    if before is None:
        scan = memory.store.log.scan(where, by_time=True, newest_first=newest_first, limit=limit)
        return list(scan)
    at, seq = before.split("|")
    cursor = (datetime.fromisoformat(at), int(seq))
    here = ChunkFilter(scope=where.scope, as_of=cursor[0])
    scan = memory.store.log.scan(here, by_time=True, newest_first=True)
    older = (c for c in scan if c.at and c.seq and (c.at, c.seq) < cursor)
    return list(itertools.islice(older, limit))


def _shadowed_by(
    memory: Memory, page: list[Chunk], where: ChunkFilter
) -> dict[str, dict[str, Any]]:
    with sqlite3.connect(memory.store.log.location) as connection:
        marks = ",".join("?" * len(page))
        edges = connection.execute(
            f"SELECT older, newer, score, oracle FROM edges WHERE older IN ({marks}) "
            "AND oracle = ?",
            [*(c.id for c in page), memory.oracle.id],
        ).fetchall()
    connection.close()
    newer = memory.store.log.get([edge[1] for edge in edges])
    found: dict[str, dict[str, Any]] = {}
    seen = [edge for edge in edges if edge[1] in newer and where.admits(newer[edge[1]])]
    for older, witness, score, oracle in sorted(seen, key=lambda edge: newer[edge[1]].seq or 0):
        found[older] = {"witness": witness, "score": score, "oracle": oracle}
    return found
