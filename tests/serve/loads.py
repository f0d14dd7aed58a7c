"""Requests that cost a server a lot of work."""

from __future__ import annotations

import json
import random
import socket
from datetime import timedelta
from typing import Any

from tests.conftest import day

PLACES = "Porto Lisbon Rome Oslo Ghent Turin Lyon Graz".split()
NAMES = "Ada Ben Cleo Dan Eva Finn Gus Hal Ivy Jon Kai Lea Max Nia Oto Pia".split()


def costly_resolve(*, documents: int = 64, chars: int = 900, seed: int = 0) -> dict[str, Any]:
    """A body for /v1/resolve that keeps two cores busy for about 20 seconds."""
    draw = random.Random(seed)

    def text() -> str:
        said = ""
        while len(said) < chars:
            said += (
                f"On day {draw.randrange(999)} we visited {draw.choice(NAMES)} in "
                f"{draw.choice(PLACES)} and had dinner at {draw.randrange(24)}. "
            )
        return said[:chars]

    return {
        "query": f"Where does everybody live now? {seed}",
        "documents": [
            {"text": text(), "at": (day(0) + timedelta(days=n)).isoformat()}
            for n in range(documents)
        ],
    }


def send(port: int, path: str, body: dict[str, Any], *, key: str | None = None) -> socket.socket:
    """Sends a request and returns its connection, with the reply still to come."""
    text = json.dumps(body).encode()
    head = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(text)}",
    ]
    if key is not None:
        head.append(f"Authorization: Bearer {key}")
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + text)
    return connection
