"""The command line: one file per command. Only it and `gcmem.serve` read the environment."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from gcmem import __version__
from gcmem.cli import (
    add,
    ask,
    backup,
    current,
    demo,
    doctor,
    export,
    forget,
    history,
    import_,
    judge,
    keys,
    mcp,
    migrate,
    qualify,
    reindex,
    search,
    serve,
    word,
)
from gcmem.cli.output import fail, warn
from gcmem.errors import GCMemError

app = typer.Typer(
    name="gcmem",
    help="Memory for agents that knows which facts are still true.",
    epilog="Begin with: gcmem demo. Every command that prints takes --json. The store is --path or "
    "--store, else $GCMEM_PATH or $GCMEM_STORE, else what ~/.gcmem/config.toml ($GCMEM_CONFIG) "
    "says, else ~/.gcmem/memory.db. $GCMEM_ENCODER names another encoder. "
    "Exit codes: 0 done, 1 failed, 2 wrong input.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class LazyBench(TyperGroup):
    """The bench commands, imported on demand so that other commands start faster."""

    @staticmethod
    def _commands() -> dict[str, Any]:
        from gcmem.cli.bench import app as bench

        return dict(get_group(bench).commands)

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names in the order of the help page."""
        return list(self._commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns one command, or None."""
        return self._commands().get(cmd_name)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"gcmem {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Memory for agents that knows which facts are still true."""


for command in (
    demo, add, search, ask, current, history, forget, judge, reindex, backup, export, import_,
    migrate, qualify, doctor, serve, mcp,
):  # fmt: skip
    name = command.__name__.rpartition(".")[2]
    app.command(name.rstrip("_"))(getattr(command, name))
for said in (word.pin, word.unpin, word.confirm, word.reject, word.undo):
    app.command()(said)
app.command(hidden=True)(judge.link)
app.add_typer(keys.app)
app.add_typer(
    typer.Typer(
        name="bench",
        cls=LazyBench,
        help="The benchmark of the paper. Data, theory, runs and reports. "
        "Figures need: pip install 'gcmem[bench]'.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
)


def run() -> None:
    """Runs the command line; a gcmem error becomes one line on stderr and exit code 1 or 2."""
    # A warning is one line, without its place in the code.
    warnings.showwarning = lambda message, *_, **__: warn(message)
    try:
        app()
    except GCMemError as error:
        fail(error, as_json="--json" in sys.argv)
