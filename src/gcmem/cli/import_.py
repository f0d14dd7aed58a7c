"""gcmem import"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from gcmem.cli.options import AsJson, StorePath, StoreURL, locate, timezone
from gcmem.cli.output import print_json, print_moved, progress_bar
from gcmem.defaults import default_encoder
from gcmem.errors import InvalidInputError
from gcmem.ingest.chunks import check_trust
from gcmem.moving import FileOrigin, import_file, open_store
from gcmem.types import TRUSTED, UNTRUSTED, check_choice


def import_(
    file: Annotated[Path, typer.Argument(help="An export, rows, or memories of mem0.")],
    path: StorePath = None,
    store: StoreURL = None,
    origin: Annotated[
        str, typer.Option("--from", help="Who wrote the file: gcmem (and plain rows) or mem0.")
    ] = "gcmem",
    tz: Annotated[
        str | None, typer.Option(help="Timezone of times in the file that have none: Europe/Rome.")
    ] = None,
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
    """Take a file of chunks in; what is there already is passed over (see docs/moving.md).

    Stopped at any moment, the same command goes on behind the last whole batch.
    """
    check_choice(origin, name="--from", allowed=get_args(FileOrigin))
    if not file.exists():  # said before a store is made at the path
        raise InvalidInputError(f"no file at {file}")
    given = _trust(trust, untrusted=untrusted)
    encoder = default_encoder()
    target = open_store(locate(path=path, store=store).store, encoder=encoder)
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
