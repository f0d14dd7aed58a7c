"""gcmem backup"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcmem.cli.options import AsJson, StorePath, StoreURL, check_exists, locate, open_store
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.cli.serve import keys_beside
from gcmem.errors import BackupUnsupportedError
from gcmem.protocols import BackupSource


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write the copy.")],
    path: StorePath = None,
    store: StoreURL = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Copy the store into a file while it is in use. The copy is a complete store.

    It holds everything that was added before the command began, but no API keys.
    """
    source = locate(path=path, store=store)
    if source.path is None:
        raise BackupUnsupportedError(source.shown)
    check_exists(source)
    opened, _ = open_store(source)
    try:
        log = opened.log
        assert isinstance(log, BackupSource)  # it is a file
        with progress_bar("copying") as advance:
            chunks = log.backup(file, overwrite=force, progress=advance)
    finally:
        opened.close()
    if as_json:
        print_json({"file": str(file), "chunks": chunks})
        return
    counted = "1 chunk is" if chunks == 1 else f"{chunks} chunks are"
    console.print(f"{counted} in {file}, checked.", markup=False, soft_wrap=True)
    keys = keys_beside(source)
    if keys.exists():
        console.print(f"The API keys are not in it: copy {keys} too.", markup=False, soft_wrap=True)
