"""A stand-in for a Qdrant server: its REST interface over the client's local mode.

It shows that requests survive the way over HTTP, and fails on demand. It is no Qdrant server: what
one does with a request is tested where GCMEM_TEST_QDRANT_URL names one.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from qdrant_client import QdrantClient, models

Act = Callable[..., Any]


class StandIn:
    """The data, which outlives the listening socket as a disk outlives a server."""

    def __init__(self) -> None:
        self.data = QdrantClient(":memory:")
        self.turn = threading.Lock()
        self.version = "1.20.0"
        self.status: int | None = None
        self.delay_s = 0.0
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.port = 0

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Serves until the end of the block, always on the same port."""
        handler = type("Handler", (_Handler,), {"stand_in": self})
        server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{self.port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> Any:
        """Returns the result of a request."""
        if path == "/":
            return None
        if (method, path) == ("POST", "/collections/aliases"):
            changes = models.ChangeAliasesOperation.model_validate(body).actions
            return self.data.update_collection_aliases(change_aliases_operations=changes)
        if (method, path) == ("GET", "/aliases"):
            return self.data.get_aliases()
        matched = re.fullmatch(r"/collections/([^/]+)(/.*)?", path)
        assert matched, path
        name, rest = matched[1], matched[2] or ""
        return ROUTES[method, rest](self.data, name, body)


def _create(data: QdrantClient, name: str, body: dict[str, Any]) -> Any:
    config = models.CreateCollection.model_validate(body)
    return data.create_collection(name, vectors_config=config.vectors or {})


def _upsert(data: QdrantClient, name: str, body: dict[str, Any]) -> Any:
    request = models.PointsList.model_validate(body)
    return data.upsert(name, points=request.points, update_filter=request.update_filter)


def _scroll(data: QdrantClient, name: str, body: dict[str, Any]) -> Any:
    request = models.ScrollRequest.model_validate(body)
    points, following = data.scroll(
        name,
        scroll_filter=request.filter,
        limit=request.limit or 10,
        offset=request.offset,
        order_by=request.order_by,
    )
    return {"points": points, "next_page_offset": following}


def _retrieve(data: QdrantClient, name: str, body: dict[str, Any]) -> Any:
    request = models.PointRequest.model_validate(body)
    return data.retrieve(
        name,
        ids=request.ids,
        with_payload=request.with_payload or False,
        with_vectors=bool(request.with_vector),
    )


def _query(data: QdrantClient, name: str, body: dict[str, Any]) -> Any:
    searches = models.QueryRequestBatch.model_validate(body).searches
    for search in searches:
        search.params = None  # the local mode warns of them
    return data.query_batch_points(name, requests=searches)


def _delete(data: QdrantClient, name: str, body: dict[str, Any]) -> Any:
    return data.delete(name, points_selector=models.PointIdsList.model_validate(body))


def _count(data: QdrantClient, name: str, body: dict[str, Any]) -> Any:
    return data.count(name, count_filter=models.CountRequest.model_validate(body).filter)


ROUTES: dict[tuple[str, str], Act] = {
    ("GET", "/exists"): lambda data, name, _: {"exists": data.collection_exists(name)},
    ("GET", ""): lambda data, name, _: data.get_collection(name),
    ("PUT", ""): _create,
    ("DELETE", ""): lambda data, name, _: data.delete_collection(name),
    ("PUT", "/index"): lambda *_: {"operation_id": 0, "status": "completed"},
    ("PUT", "/points"): _upsert,
    ("POST", "/points"): _retrieve,
    ("POST", "/points/scroll"): _scroll,
    ("POST", "/points/count"): _count,
    ("POST", "/points/delete"): _delete,
    ("POST", "/points/query/batch"): _query,
}


class _Handler(BaseHTTPRequestHandler):
    stand_in: StandIn
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        stand_in = self.stand_in
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        path = urlsplit(self.path).path
        stand_in.requests.append((self.command, path, dict(self.headers)))
        time.sleep(stand_in.delay_s)
        if stand_in.status is not None:
            key = self.headers.get("api-key")
            return self._reply(stand_in.status, {"status": {"error": f"no, {key}"}})
        if path == "/":
            return self._reply(200, {"title": "stand-in", "version": stand_in.version})
        try:
            with stand_in.turn:
                result = stand_in.answer(self.command, path, body)
                reply = {"result": _json(result), "status": "ok", "time": 0.0}
        except ValueError as error:
            missing = "not found" in str(error)
            return self._reply(404 if missing else 400, {"status": {"error": str(error)}})
        return self._reply(200, reply)

    do_GET = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

    def _reply(self, status: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
