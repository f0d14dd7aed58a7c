"""gcmem reindex"""

from __future__ import annotations

from contextlib import closing

from gcmem.cli.counting import counted
from gcmem.cli.encoders import encoder_named
from gcmem.cli.options import AsJson, EncoderName, StorePath, StoreURL, check_exists, locate
from gcmem.cli.output import console, print_json, progress_bar, warn
from gcmem.store.urls import open_store


def reindex(
    path: StorePath = None,
    store: StoreURL = None,
    encoder_name: EncoderName = None,
    as_json: AsJson = False,
) -> None:
    """Embed every chunk again with the configured encoder, or another.

    If it is stopped, the same command continues.
    """
    where = locate(path=path, store=store, encoder=encoder_name)
    check_exists(where)
    encoder = encoder_named(where.encoder)
    opened = open_store(where.store, encoder=encoder, stm_size=0)
    with closing(opened), progress_bar("re-embedding") as advance:
        before = opened.index.encoder_id
        count = opened.index.rebuild(encoder, progress=advance)
    if as_json:
        print_json({"chunks": count, "from": before, "to": encoder.id})
    else:
        console.print(
            f"Embedded {counted(count, 'chunk')} with {encoder.id} (before: {before}).",
            markup=False,
        )
    if where.encoder != locate(path=path, store=store).encoder:
        warn(f"use it from now on: GCMEM_ENCODER='{where.encoder}', or encoder in the config file")
