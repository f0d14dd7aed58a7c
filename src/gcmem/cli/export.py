"""gcmem export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from gcmem.cli.counting import counted
from gcmem.cli.encoders import encoder_named
from gcmem.cli.location import check_folder
from gcmem.cli.options import (
    AgentId,
    AsJson,
    RunId,
    StorePath,
    StoreURL,
    UserId,
    check_exists,
    locate,
)  # fmt: skip
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.errors import InvalidInputError
from gcmem.transfer import FileFormat, export_file, open_store
from gcmem.types import ChunkFilter, Scope, check_choice


def export(
    file: Annotated[Path, typer.Argument(help="Where to write; an existing file is replaced.")],
    path: StorePath = None,
    store: StoreURL = None,
    format: Annotated[
        str | None,
        typer.Option(help="jsonl or parquet; default: by the suffix. .gz compresses JSON lines."),
    ] = None,
    user: UserId = None,
    agent: AgentId = None,
    run: RunId = None,
    vectors: Annotated[
        bool, typer.Option(help="Write the vectors too, so that an import need not embed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write chunks into a file that gcmem import reads.

    The file appears when it is complete. If it is stopped, the same command continues.
    """
    if format is not None:
        check_choice(format, name="--format", allowed=get_args(FileFormat))
    source = locate(path=path, store=store)
    check_exists(source)
    check_folder(file)
    if file.is_dir():
        raise InvalidInputError(f"{file} is a folder; name a file in it")
    opened = open_store(source.store, encoder=encoder_named(source.encoder))
    try:
        with progress_bar("exporting") as advance:
            done = export_file(
                opened,
                file,
                where=ChunkFilter(scope=Scope(user_id=user, agent_id=agent, run_id=run)),
                format=cast(FileFormat | None, format),
                vectors=vectors,
                progress=advance,
            )
    finally:
        opened.close()
    if as_json:
        print_json(done)
        return
    console.print(f"Exported {counted(done.chunks, 'chunk')} to {file}.", markup=False)
    if done.resumed_from:
        console.print(f"{done.resumed_from:,} of them had been written before it was stopped.")
