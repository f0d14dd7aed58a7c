"""Embeds a whole store again."""

from __future__ import annotations

from pathlib import Path

from gcmem.defaults import default_encoder
from gcmem.protocols import Encoder, Progress
from gcmem.store.urls import check_location, open_store


def reindex(
    path: Path | str, *, encoder: Encoder | None = None, progress: Progress | None = None
) -> int:
    """Embeds the whole store at a path or URL again with `encoder`; returns the chunk count.

    If it is interrupted, the old vectors stay in use and the next call continues where it stopped.
    """
    check_location(path)
    used = encoder or default_encoder()
    store = open_store(str(path), encoder=used, stm_size=0)
    try:
        return store.index.rebuild(used, progress=progress)
    finally:
        store.close()
