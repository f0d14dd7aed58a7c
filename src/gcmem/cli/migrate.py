"""gcmem migrate"""

from __future__ import annotations

from typing import Annotated

import typer

from gcmem import transfer
from gcmem.cli.encoders import encoder_named
from gcmem.cli.options import AsJson, check_exists, locate
from gcmem.cli.output import print_json, print_moved, progress_bar


def migrate(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store to copy, path or URL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The store to fill, path or URL.")],
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out chunks that no store can keep, and list them."),
    ] = False,
    verify: Annotated[bool, typer.Option(help="Count and hash both sides afterwards.")] = True,
    as_json: AsJson = False,
) -> None:
    """Copy every chunk of one store into another.

    The source is not changed. If it is stopped, the same command continues.
    """
    check_exists(locate(store=source))
    where = locate(store=target)
    where.check_folder()
    encoder = encoder_named(where.encoder)
    old = transfer.open_source(source, encoder=encoder)
    try:
        new = transfer.open_store(target, encoder=encoder)
        try:
            with progress_bar("copying") as advance:
                moved = transfer.migrate(
                    old,
                    new,
                    encoder=encoder,
                    skip_bad=skip_bad,
                    check=verify,
                    progress=advance,
                    check_progress=advance,
                )
        finally:
            new.close()
    finally:
        old.close()
    if as_json:
        print_json(moved)
    else:
        print_moved(moved)
