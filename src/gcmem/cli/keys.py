"""gcmem keys create | list | revoke"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from gcmem.cli.location import check_folder
from gcmem.cli.options import AgentId, AsJson, RunId, StorePath, StoreURL, UserId, locate
from gcmem.cli.output import console, print_json
from gcmem.cli.serve import KeysFile, keys_beside
from gcmem.serve.keys import ApiKey, KeyStore
from gcmem.types import Scope

app = typer.Typer(
    name="keys",
    help="API keys for gcmem serve, each bound to a scope.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="The key's name, as logs and lists show it.")]


@app.command()
def create(
    name: Name,
    path: StorePath = None,
    store: StoreURL = None,
    keys: KeysFile = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="The key may not add or erase.")
    ] = False,
    untrusted: Annotated[
        bool,
        typer.Option("--untrusted", help="What the key adds is not trusted."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a key and show it once; without --user, --agent or --run it opens everything."""
    scope = Scope(user_id=user, agent_id=agent, run_id=run)
    file = keys or keys_beside(locate(path=path, store=store))
    check_folder(file)
    key, secret = KeyStore(file).create(name, scope=scope, read_only=read_only, untrusted=untrusted)
    if as_json:
        print_json({"key": key, "secret": secret})
    else:
        console.print(f"{secret}", soft_wrap=True, markup=False)
        console.print(
            f"Keep it: it is not shown again. It gives access to {_bound_to(key)}.", markup=False
        )


@app.command("list")
def list_keys(
    path: StorePath = None, store: StoreURL = None, keys: KeysFile = None, as_json: AsJson = False
) -> None:
    """List the keys; their secrets are not stored."""
    file = keys or keys_beside(locate(path=path, store=store))
    found = KeyStore(file).list() if file.exists() else []
    if as_json:
        print_json(found)
        return
    if not found:
        console.print(f"No keys in {file} yet; create one: gcmem keys create NAME", markup=False)
        return
    table = Table("name", "scope", "may", "made", "revoked")
    for key in found:
        may = "read" if key.read_only else "read, write"
        revoked = f"{key.revoked_at:%Y-%m-%d %H:%M}" if key.revoked_at else ""
        table.add_row(
            key.name,
            _bound_to(key),
            f"{may}, untrusted" if key.untrusted else may,
            f"{key.created_at:%Y-%m-%d %H:%M}",
            revoked,
        )
    console.print(table)


@app.command()
def revoke(
    name: Name,
    path: StorePath = None,
    store: StoreURL = None,
    keys: KeysFile = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key. This takes effect at once, even on a running server."""
    key = KeyStore(keys or keys_beside(locate(path=path, store=store))).revoke(name)
    if as_json:
        print_json(key)
    else:
        console.print(f"Revoked {key.name}.", markup=False)


def _bound_to(key: ApiKey) -> str:
    fields = ("user_id", "agent_id", "run_id")
    bound = [f"{f}={getattr(key.scope, f)}" for f in fields if getattr(key.scope, f) is not None]
    return ", ".join(bound) or "every user, agent and run"
