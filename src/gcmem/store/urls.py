"""Opens a store by its URL; each engine's adapter is imported only when a URL asks for it."""

from __future__ import annotations

import importlib
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

from gcmem.errors import InvalidInputError
from gcmem.protocols import Encoder, Store
from gcmem.store import open_embedded
from gcmem.store.redact import redacted
from gcmem.store.sqlite.file import IN_MEMORY
from gcmem.types import is_storable

OPENERS = {
    "postgresql": ("gcmem.store.postgres", "open_postgres"),
    "postgres": ("gcmem.store.postgres", "open_postgres"),
    "qdrant": ("gcmem.store.qdrant", "open_qdrant"),
    "qdrant+http": ("gcmem.store.qdrant", "open_qdrant"),
    "qdrant+https": ("gcmem.store.qdrant", "open_qdrant"),
}
SQLITE = "sqlite:///"


def open_url(url: str, *, encoder: Encoder, stm_size: int, stm: str | None = None) -> Store:
    """Opens the store at a URL; if `stm` is given, the recency buffer is there.

    A path or sqlite:///path is the embedded store; postgresql:// and qdrant:// are servers.
    """
    check_location(url)
    path = sqlite_path(str(url))
    if path is not None:
        store = open_embedded(path, encoder=encoder, stm_size=stm_size)
        # The same path on another machine is another file.
        namespace = "" if path == IN_MEMORY else f"{platform.node()}:{_absolute(path)}"
    else:
        module, opener = _opener(url)
        store = getattr(importlib.import_module(module), opener)(
            url, encoder=encoder, stm_size=stm_size
        )
        namespace = store.log.location
    if not stm:
        return store
    try:
        return _with_buffer(store, stm, stm_size=stm_size, namespace=namespace)
    except BaseException:
        store.close()
        raise


def check_location(location: Any) -> None:
    """Raises unless a location is a path or a URL."""
    if not isinstance(location, (str, Path)) or not is_storable(str(location)):
        raise InvalidInputError(f"{location!r} is not a location: pass a path or a URL")


def sqlite_path(url: str) -> str | None:
    """Returns the embedded store's file for a path or sqlite URL, None for any other URL.

    The path follows sqlite:///: `sqlite:///notes.db` is relative, `sqlite:////srv/notes.db` is
    absolute.
    """
    if not url:
        raise InvalidInputError("the store's URL is empty: pass a path or a URL")
    if url.startswith(SQLITE):
        return url.removeprefix(SQLITE) or IN_MEMORY
    if url.startswith("sqlite:"):
        raise InvalidInputError(f"{url}: write sqlite:///relative.db or sqlite:////absolute.db")
    return None if "://" in url else url


def _opener(url: str) -> tuple[str, str]:
    scheme = url.partition("://")[0].lower()
    if scheme in OPENERS:
        return OPENERS[scheme]
    hint = "; Redis holds the recency buffer only: pass it as stm" if "redis" in scheme else ""
    raise InvalidInputError(
        f"{redacted(url)}: no store has the scheme {scheme!r}; use a path, sqlite:///, "
        f"postgresql:// or qdrant://{hint}"
    )


def _with_buffer(store: Store, stm: str, *, stm_size: int, namespace: str) -> Store:
    from gcmem.store.redis.buffer import RedisBuffer
    from gcmem.store.redis.client import RedisSettings

    settings = RedisSettings(namespace=namespace)
    buffer = RedisBuffer(stm, log=store.log, capacity=stm_size, settings=settings)
    store.buffer.close()
    return replace(store, buffer=buffer)


def _absolute(path: str) -> Path:
    return Path(path).expanduser().resolve()
