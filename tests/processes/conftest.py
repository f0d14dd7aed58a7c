"""Real HTTP endpoints on loopback: a small real model, and a scripted server that shows faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import xllamacpp

from gcmem.llm import OpenAIChat
from tests.small_model import small_model_file


@pytest.fixture(scope="package")
def small_model() -> Iterator[str]:
    """The base URL of a real OpenAI-compatible server with SmolLM2-135M."""
    params = xllamacpp.CommonParams()
    params.model.path = str(small_model_file())
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = 1  # two would wait for each other on a machine that is shared
    params.port = 0
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


Connect = Callable[..., OpenAIChat]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes chat models, and closes their sockets after the test: left open, they are a warning."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(OpenAIChat(**settings))


class Faulty(ThreadingHTTPServer):
    """Answers from a script of (status, body); the last entry repeats."""

    script: list[tuple[int, Any]]
    calls: int = 0


class Handler(BaseHTTPRequestHandler):
    server: Faulty

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = self.server.script[min(self.server.calls, len(self.server.script) - 1)]
        self.server.calls += 1
        if status == 0:  # hang until the client gives up
            threading.Event().wait(2)
            return
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Keeps the tests' output clean."""


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    server = Faulty(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url(server: Faulty) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


def chat_reply(content: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }
