"""Opens a store by its URL; each engine's adapter is imported only when a URL asks for it."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from gcmem.errors import InvalidInputError
from gcmem.protocols import Encoder, SearchEngine, Store
from gcmem.store import open_embedded
from gcmem.store.beside import IndexBeside
from gcmem.store.combined_url import split_index
from gcmem.store.redact import redacted
from gcmem.store.sqlite.file import IN_MEMORY
from gcmem.types import is_storable

LOGS = {
    "postgresql": "gcmem.store.postgres:open_postgres",
    "postgres": "gcmem.store.postgres:open_postgres",
}
INDEXES = {
    "qdrant": "gcmem.store.qdrant.engine:open_engine",
    "qdrant+http": "gcmem.store.qdrant.engine:open_engine",
    "qdrant+https": "gcmem.store.qdrant.engine:open_engine",
}
LOG_PLUGINS, INDEX_PLUGINS = "gcmem.stores", "gcmem.indexes"
"""Entry point groups by which other packages add URL schemes."""
SQLITE = "sqlite:///"


def open_store(url: str, *, encoder: Encoder, stm_size: int, stm: str | None = None) -> Store:
    """Opens the store at a URL; if `stm` is given, the recency buffer is there.

    A path or sqlite:///path is the embedded store, postgresql:// a server. A URL that ends in
    `?index=` and another URL, qdrant://, keeps the vectors there instead.
    """
    check_location(url)
    plain, index_url = split_index(str(url))
    path = sqlite_path(plain)
    if path is not None:
        store = open_embedded(path, encoder=encoder, stm_size=stm_size)
        # The same path on another machine is another file.
        namespace = "" if path == IN_MEMORY else f"{platform.node()}:{_absolute(path)}"
    else:
        opener = _opener(plain, LOGS, LOG_PLUGINS, kind="store")
        store = opener(plain, encoder=encoder, stm_size=stm_size)
        namespace = store.log.location
    try:
        if index_url is not None:
            engine = _opener(index_url, INDEXES, INDEX_PLUGINS, kind="index")(index_url)
            store = _beside(store, engine, encoder=encoder)
        if stm:
            store = _with_buffer(store, stm, stm_size=stm_size, namespace=namespace)
    except BaseException:
        store.close()
        raise
    return store


def _beside(store: Store, engine: SearchEngine, *, encoder: Encoder) -> Store:
    """Puts an engine in the place of the store's own index, whose vectors are then dropped."""
    index = IndexBeside(store.log, engine, encoder=encoder)
    try:
        index.check_belongs()  # first: with a wrong collection, nothing may be lost
    except BaseException:
        engine.close()
        raise
    store.index.hand_over()
    return replace(store, index=index)


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
    url, _ = split_index(url)
    if url.startswith(SQLITE):
        return url.removeprefix(SQLITE) or IN_MEMORY
    if url.startswith("sqlite:"):
        raise InvalidInputError(f"{url}: write sqlite:///relative.db or sqlite:////absolute.db")
    return None if "://" in url else url


def _opener(url: str, known: Mapping[str, str], plugins: str, *, kind: str) -> Callable[..., Any]:
    """Returns the function that opens a URL, by its scheme."""
    scheme = url.partition("://")[0].lower()
    if scheme in known:
        module, _, function = known[scheme].partition(":")
        return cast("Callable[..., Any]", getattr(importlib.import_module(module), function))
    for plugin in entry_points(group=plugins, name=scheme):
        return cast("Callable[..., Any]", plugin.load())
    if kind == "index":
        raise InvalidInputError(
            f"{redacted(url)}: no index has the scheme {scheme!r}; use qdrant://"
        )
    hint = ""
    if "redis" in scheme:
        hint = "; Redis holds the recency buffer only: pass it as stm"
    elif scheme in INDEXES:
        hint = (
            f"; Qdrant holds the index only: sqlite:///FILE.db?index={redacted(url)}. To copy a "
            f"store that an older gcmem kept there: gcmem migrate {redacted(url)} sqlite:///FILE.db"
        )
    raise InvalidInputError(
        f"{redacted(url)}: no store has the scheme {scheme!r}; use a path, sqlite:/// or "
        f"postgresql://{hint}"
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
