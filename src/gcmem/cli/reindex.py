"""gcmem reindex"""

from __future__ import annotations

from contextlib import closing

from gcmem.cli.counting import counted
from gcmem.cli.options import AsJson, StorePath, StoreURL, check_exists, locate
from gcmem.cli.output import console, print_json, progress_bar
from gcmem.defaults import default_encoder
from gcmem.store.urls import open_store


def reindex(path: StorePath = None, store: StoreURL = None, as_json: AsJson = False) -> None:
    """Embed every chunk again with the current encoder.

    If it is stopped, the same command continues.
    """
    where = locate(path=path, store=store)
    check_exists(where)
    encoder = default_encoder()
    opened = open_store(where.store, encoder=encoder, stm_size=0)
    with closing(opened), progress_bar("re-embedding") as advance:
        before = opened.index.encoder_id
        count = opened.index.rebuild(encoder, progress=advance)
    if as_json:
        print_json({"chunks": count, "from": before, "to": encoder.id})
    else:
        console.print(f"Embedded {counted(count, 'chunk')} with {encoder.id} (before: {before}).")
