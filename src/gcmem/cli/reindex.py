"""gcmem reindex"""

from __future__ import annotations

from gcmem import memory
from gcmem.cli.options import DEFAULT_PATH, AsJson, StorePath, check_exists
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.defaults import default_encoder
from gcmem.store import SQLiteLog


def reindex(path: StorePath = DEFAULT_PATH, as_json: AsJson = False) -> None:
    """Embed every chunk anew with the current encoder; can be stopped and started again."""
    check_exists(path)
    encoder = default_encoder()
    log = SQLiteLog(path)
    before = log.encoder_id
    log.close()
    with progress_bar("re-embedding") as advance:
        count = memory.reindex(path, encoder=encoder, progress=advance)
    if as_json:
        print_json({"chunks": count, "from": before, "to": encoder.id})
    else:
        console.print(f"Embedded {count} chunks with {encoder.id} (before: {before}).")
