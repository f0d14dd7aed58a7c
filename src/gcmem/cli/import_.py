"""gcmem import"""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from gcmem.cli.encoders import encoder_named
from gcmem.cli.options import AsJson, StorePath, StoreURL, Tz, locate, timezone
from gcmem.cli.output import print_json, print_moved, progress_bar
from gcmem.errors import InvalidInputError
from gcmem.ingest import read_session_file
from gcmem.ingest.chunks import check_trust
from gcmem.transfer import FileOrigin, import_file, is_export, open_store
from gcmem.types import TRUSTED, UNTRUSTED, check_choice


def import_(
    file: Annotated[
        Path, typer.Argument(help="An export of gcmem, rows of your own, or memories of mem0.")
    ],
    path: StorePath = None,
    store: StoreURL = None,
    origin: Annotated[
        str, typer.Option("--from", help="Who wrote the file: gcmem (and plain rows) or mem0.")
    ] = "gcmem",
    tz: Tz = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out rows that can't be read, and count them.")
    ] = False,
    trust: Annotated[
        int | None,
        typer.Option(help="The highest trust level that a row gets, 0 to 100; default: 1."),
    ] = None,
    untrusted: Annotated[
        bool, typer.Option("--untrusted", help="The source may lie: the same as --trust 0.")
    ] = False,
    verify: Annotated[bool, typer.Option(help="Count and hash both sides afterwards.")] = True,
    as_json: AsJson = False,
) -> None:
    """Import an export of gcmem, or rows of your own.

    Chunks that are already stored are skipped. Use `gcmem add --file` for a chat. If it is stopped,
    the same command continues.
    """
    check_choice(origin, name="--from", allowed=get_args(FileOrigin))
    where = locate(path=path, store=store)
    # All of this is checked before a store is created at the path.
    if not file.is_file():
        raise InvalidInputError(f"no file at {file}")
    given = _trust(trust, untrusted=untrusted)
    if origin == "gcmem":
        _refuse_chat(file)
    where.check_folder()
    encoder = encoder_named(where.encoder)
    target = open_store(where.store, encoder=encoder)
    try:
        with progress_bar("importing") as advance:
            moved = import_file(
                file,
                target,
                encoder=encoder,
                origin=cast(FileOrigin, origin),
                tz=timezone(tz),
                trust=given,
                skip_bad=skip_bad,
                check=verify,
                progress=advance,
                check_progress=advance,
            )
    finally:
        target.close()
    if as_json:
        print_json(moved)
    else:
        print_moved(moved)


def _trust(level: int | None, *, untrusted: bool) -> int:
    if untrusted and level is not None:
        raise InvalidInputError("give --trust or --untrusted, not both")
    if untrusted:
        return UNTRUSTED
    return check_trust(TRUSTED if level is None else level)


def _refuse_chat(file: Path) -> None:
    """Raises an error that names the right command if the file is a chat, by its first message."""
    if is_export(file) or _begins_with_row(file):
        return
    try:
        read_session_file(file, tz=UTC)
    except InvalidInputError:
        return  # the import will say what is wrong with it
    raise InvalidInputError(f"{file} looks like a chat; add it with: gcmem add --file {file}")


def _begins_with_row(file: Path) -> bool:
    try:
        with file.open("rb") as lines:
            first = json.loads(lines.readline())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "text" in first and "at" in first
