"""The MCP server as clients start it: a process over stdio, a process over HTTP."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from gcmem.errors import InvalidInputError
from gcmem.serve.http.access import is_loopback
from gcmem.serve.mcp.http import make_http_app

T = TypeVar("T")
COMMAND = [sys.executable, "-m", "gcmem", "mcp"]
TOKEN = "a-token-of-twenty-four-ch"
PATIENCE_S = 120
"""Long enough on a busy machine; nothing waits this long on an idle one."""
TOOLS = {
    "add_memory",
    "search_memories",
    "ask_memory",
    "explain_shadow",
    "list_history",
    "current_memories",
    "pin_memory",
    "unpin_memory",
    "confirm_outdated",
    "reject_outdated",
    "delete_memory",
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def use(server: Any, act: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with Client(server) as client:
            return await act(client)

    return anyio.run(run)


def use_http(url: str, act: Callable[[Client], Awaitable[T]], **headers: str) -> T:
    async def run() -> T:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await act(client)

    return anyio.run(run)


async def remember_and_ask(client: Client) -> Any:
    assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
    for text, at in (
        ("I work at Initech.", "2026-01-01T09:00:00Z"),
        ("I left Initech and now work at Globex.", "2026-02-01T09:00:00Z"),
    ):
        added = await client.call_tool("add_memory", {"text": text, "at": at})
        assert not added.is_error, added.content
    # The server judges in the background, and a search does not wait long for it.
    while ((await client.call_tool("current_memories", {})).structured_content or {})["pending"]:
        await anyio.sleep(0.1)
    found = await client.call_tool("search_memories", {"query": "Where do I work?"})
    return found.structured_content


def check_found(found: Any) -> None:
    assert [m["text"] for m in found["kept"]] == ["I left Initech and now work at Globex."]
    assert [s["memory"]["text"] for s in found["shadows"]] == ["I work at Initech."]


def test_a_client_starts_the_server_over_stdio(tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    arguments = [*COMMAND[1:], "--path", str(store), "--user-id", "ana"]
    check_found(use(StdioServerParameters(command=COMMAND[0], args=arguments), remember_and_ask))


def test_nothing_but_the_protocol_is_written_to_stdout(tmp_path: Path) -> None:
    """By hand, with warnings on and a broken line: every line of stdout is a JSON-RPC message."""
    lines = [
        INITIALIZE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "add_memory", "arguments": {"text": "Ana eats tofu."}},
        },
    ]
    process = subprocess.Popen(
        [COMMAND[0], "-W", "default", *COMMAND[1:], "--path", str(tmp_path / "m.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("this is no JSON\n" + "".join(json.dumps(line) + "\n" for line in lines))
    process.stdin.flush()
    replies: list[dict[str, Any]] = []
    while {1, 2, 3} - {reply.get("id") for reply in replies}:
        replies.append(json.loads(process.stdout.readline()))
    process.stdin.close()
    assert process.wait(timeout=PATIENCE_S) == 0
    left = process.stdout.read()
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()
    assert left == ""
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)
    by_id = {reply.get("id"): reply for reply in replies}
    assert by_id[1]["result"]["serverInfo"]["name"] == "gcmem"
    assert len(by_id[2]["result"]["tools"]) == len(TOOLS)
    assert by_id[3]["result"]["isError"] is False


def test_the_snippets_for_clients_start_the_server(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")
    entries = [
        server["gcmem"]
        for block in re.findall(r"```json\n(.*?)```", page, re.S)
        for server in json.loads(block).values()
    ]
    assert len(entries) == 3
    started = {(entry["command"], *entry["args"]) for entry in entries}
    for command, *arguments in started:
        server = StdioServerParameters(
            command=str(Path(sys.executable).with_name(command)),
            args=arguments,
            env={"GCMEM_PATH": str(tmp_path / "m.db")},
        )
        listed = use(server, lambda client: client.list_tools())
        assert {tool.name for tool in listed.tools} == TOOLS


@contextmanager
def serving(*arguments: str, env: dict[str, str] | None = None) -> Iterator[str]:
    """Starts an HTTP server on a free port and stops it; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [*COMMAND, "--transport", "http", "--port", str(port), *arguments],
        env={**os.environ, **(env or {})},
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def post(url: str, message: dict[str, Any], **headers: str) -> int:
    return httpx2.post(
        url, json=message, headers={**HEADERS, **headers}, timeout=PATIENCE_S
    ).status_code


def test_a_client_reaches_the_server_over_http_and_a_strange_web_page_does_not(
    tmp_path: Path,
) -> None:
    with serving("--path", str(tmp_path / "m.db"), "--user-id", "ana") as url:
        check_found(use_http(url, remember_and_ask))
        assert post(url, INITIALIZE) == 200
        assert post(url, INITIALIZE, Origin=url.removesuffix("/mcp")) == 200
        assert post(url, INITIALIZE, Host="evil.example.org") == 421
        assert post(url, INITIALIZE, Host="localhost.evil.example.org:80") == 421
        assert post(url, INITIALIZE, Origin="http://evil.example.org") == 403
        assert post(url, INITIALIZE, Origin="null") == 403


def test_without_a_token_a_proxy_opens_nothing(tmp_path: Path) -> None:
    with serving("--path", str(tmp_path / "m.db")) as url:
        for header in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"):
            refused = httpx2.post(
                url, json=INITIALIZE, headers={**HEADERS, header: "x"}, timeout=PATIENCE_S
            )
            assert refused.status_code == 403
            assert "--token-env" in refused.json()["error_description"]
        port = int(url.split(":")[2].removesuffix("/mcp"))
        body = json.dumps(INITIALIZE)
        lines = [f"POST /mcp HTTP/1.0\r\nHost: 127.0.0.1:{port}"]
        lines += [f"{name}: {value}" for name, value in HEADERS.items()]
        lines += [f"Content-Length: {len(body)}", "", body]
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
            connection.sendall("\r\n".join(lines).encode())
            assert b" 403 " in connection.recv(4096).split(b"\r\n")[0]


def test_with_a_token_a_proxy_may_stand_before_the_server(tmp_path: Path) -> None:
    options = ["--path", str(tmp_path / "m.db"), "--allow-host", "memory.example.org"]
    with serving(*options, "--token-env", "TOKEN", env={"TOKEN": TOKEN}) as url:
        headers = {"Host": "memory.example.org", "X-Forwarded-For": "203.0.113.9"}
        assert post(url, INITIALIZE, Authorization=f"Bearer {TOKEN}", **headers) == 200
        assert post(url, INITIALIZE, **headers) == 401


def test_a_token_is_asked_of_everybody(tmp_path: Path) -> None:
    store = str(tmp_path / "m.db")
    with serving("--path", store, "--token-env", "TOKEN", env={"TOKEN": TOKEN}) as url:
        assert post(url, INITIALIZE) == 401
        assert post(url, INITIALIZE, Authorization="Bearer wrong") == 401
        assert post(url, INITIALIZE, Authorization=f"Basic {TOKEN}") == 401
        assert post(url.removesuffix("/mcp") + "/other", PING) == 401
        assert post(url, INITIALIZE, Authorization=f"Bearer {TOKEN}") == 200

        check_found(use_http(url, remember_and_ask, Authorization=f"Bearer {TOKEN}"))


def test_a_public_address_needs_a_token_and_a_name() -> None:
    from gcmem import Memory
    from gcmem.serve.mcp.server import make_server
    from gcmem.testing import HashEncoder, RuleOracle

    with Memory(
        ":memory:",
        encoder=HashEncoder(),
        oracle=RuleOracle(lambda a, b: False),
        require_qualified=False,
    ) as memory:
        server = make_server(memory)
        for host in ("0.0.0.0", "::", "192.168.1.4", "memory.example.org", ""):
            with pytest.raises(InvalidInputError, match="--token-env"):
                make_http_app(server, host=host)
        with pytest.raises(InvalidInputError, match="--token-env"):
            make_http_app(server, host="127.0.0.1", allowed_hosts=["memory.example.org"])
        with pytest.raises(InvalidInputError, match="too short"):
            make_http_app(server, host="127.0.0.1", token="short")
        with pytest.raises(InvalidInputError, match="--allow-host"):
            make_http_app(server, host="0.0.0.0", token=TOKEN)
        make_http_app(server, host="0.0.0.0", token=TOKEN, allowed_hosts=["memory.example.org"])
        make_http_app(server, host="192.168.1.4", token=TOKEN)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("localhost.example.org", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_only_this_machine_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--transport", "carrier-pigeon"], "choose one of stdio, http"),
        (["--transport", "http", "--token-env", "NO_SUCH_TOKEN"], "no such environment variable"),
        (["--transport", "http", "--host", "0.0.0.0"], "a token is needed"),
        (["--user-id", " "], "non-empty string"),
    ],
)
def test_wrong_options_are_told_on_stderr(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [*COMMAND, "--path", str(tmp_path / "m.db"), *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_without_the_extra_the_command_names_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['gcmem', 'mcp', '--path', 'm.db']; "
        "from gcmem.cli import run; run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "pip install 'gcmem[mcp]'" in done.stderr
