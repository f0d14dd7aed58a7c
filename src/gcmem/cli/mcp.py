"""gcmem mcp"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gcmem.cli.options import (
    BaseURL,
    Judging,
    OracleName,
    ReaderName,
    StmURL,
    StorePath,
    StoreURL,
    Unqualified,
    locate,
    open_memory,
)  # fmt: skip
from gcmem.cli.output import warn
from gcmem.errors import InvalidInputError, MissingExtraError
from gcmem.types import TRUSTED, UNTRUSTED, Scope, check_choice


def mcp(
    path: StorePath = None,
    store: StoreURL = None,
    stm: StmURL = None,
    transport: Annotated[
        str, typer.Option(help="stdio (an agent on this machine starts it) or http.")
    ] = "stdio",
    user_id: Annotated[
        str | None, typer.Option("--user-id", "--user", help="The user it is bound to.")
    ] = None,
    agent_id: Annotated[
        str | None, typer.Option("--agent-id", "--agent", help="The agent it is bound to.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run-id", "--run", help="The run it is bound to.")
    ] = None,
    oracle: OracleName = "local",
    reader: ReaderName = "local",
    base_url: BaseURL = None,
    unqualified: Unqualified = False,
    untrusted: Annotated[
        bool,
        typer.Option("--untrusted", help="What is added through it can't replace trusted facts."),
    ] = False,
    host: Annotated[str, typer.Option(help="Where to listen (http).")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port (http).")] = 8765,
    token_env: Annotated[
        str | None,
        typer.Option(
            help="The environment variable that holds the bearer token (http).", metavar="NAME"
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name by which clients reach this machine (http); repeatable.", metavar="NAME"
        ),
    ] = None,
) -> None:
    """Serve the memory to agents over MCP.

    Needs: pip install 'gcmem[mcp]'. With --transport http it prints its address on stderr.
    """
    check_choice(transport, name="--transport", allowed=("stdio", "http"))
    try:
        from gcmem.serve.mcp.http import make_http_app, serve_http
        from gcmem.serve.mcp.server import make_server
    except ModuleNotFoundError as error:
        raise MissingExtraError("mcp", package=str(error.name)) from None
    scope = Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
    token = _token(token_env)
    judging = Judging(
        oracle=oracle, reader=reader, base_url=base_url, unqualified=unqualified, in_background=True
    )
    with open_memory(locate(path=path, store=store, stm=stm), judging) as memory:
        server = make_server(memory, scope=scope, trust=UNTRUSTED if untrusted else TRUSTED)
        if transport == "stdio":
            if sys.stdin.isatty():
                warn("speaking MCP on stdin and stdout: an agent should start this command")
            server.run("stdio")
        else:
            app = make_http_app(server, host=host, token=token, allowed_hosts=allow_host or ())
            serve_http(app, host=host, port=port)


def _token(name: str | None) -> str | None:
    """Reads the token from the environment, since other users can read command lines."""
    if name is None:
        return None
    token = os.environ.get(name, "").strip()
    if not token:
        raise InvalidInputError(f"--token-env {name}: there is no such environment variable")
    return token
