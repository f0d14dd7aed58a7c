"""Where a Qdrant store lives and how it is laid out, as its URL says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from urllib.parse import parse_qsl, unquote, urlsplit

from gcmem.errors import InvalidInputError

IN_MEMORY = ":memory:"
DEFAULT_COLLECTION = "gcmem"
DEFAULT_PORT = 6333


@dataclass(frozen=True, slots=True, kw_only=True)
class QdrantAddress:
    """Where a store lives, taken from its URL; `path` instead of `url` is the local mode."""

    collection: str = DEFAULT_COLLECTION
    url: str | None = None
    path: str | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def location(self) -> str:
        """The address as messages show it, without the key."""
        if self.path is not None:
            return f"qdrant://{self.path}"
        return f"qdrant+{self.url}/{self.collection}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QdrantSettings:
    """How collections are laid out on a cluster, and how long a request may take.

    A write is acknowledged by the majority of the replicas unless another number is given.
    """

    shard_number: int | None = None
    replication_factor: int | None = None
    write_consistency_factor: int | None = None
    timeout_s: int = 10

    def __post_init__(self) -> None:
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidInputError(f"{name}={value!r}: pass a whole number from 1")


SETTING_NAMES = tuple(f.name for f in fields(QdrantSettings))


def parse_url(url: str) -> tuple[QdrantAddress, dict[str, int]]:
    """Returns the address in a qdrant:// URL, and the settings in its query."""
    plain, _, query = url.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    collection = options.pop("collection", DEFAULT_COLLECTION)
    settings = _settings(options)
    if plain == f"qdrant://{IN_MEMORY}":
        return QdrantAddress(collection=_name(collection), path=IN_MEMORY), settings
    try:
        parts = urlsplit(plain)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise InvalidInputError("the port of a qdrant:// URL is a number from 1 to 65535") from None
    scheme = {"qdrant": "http", "qdrant+http": "http", "qdrant+https": "https"}.get(parts.scheme)
    if scheme is None:
        raise InvalidInputError(
            f"{parts.scheme}:// is not Qdrant: pass qdrant://host:6333/collection, "
            "qdrant+https://host/collection, qdrant:///folder or qdrant://:memory:"
        )
    if not parts.hostname:
        if not parts.path.strip("/"):
            raise InvalidInputError("a qdrant:/// URL names a folder, for example qdrant:///data")
        return QdrantAddress(collection=_name(collection), path=unquote(parts.path)), settings
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return (
        QdrantAddress(
            collection=_name(unquote(parts.path.strip("/")) or collection),
            url=f"{scheme}://{host}:{port}",
            api_key=unquote(parts.password) if parts.password else None,
        ),
        settings,
    )


def _settings(options: Mapping[str, str]) -> dict[str, int]:
    for key, value in options.items():
        if key not in SETTING_NAMES or not value.isascii() or not value.isdigit():
            raise InvalidInputError(
                f"a qdrant:// URL takes {', '.join(SETTING_NAMES)} as whole numbers, not {key!r}"
            )
    return {key: int(value) for key, value in options.items()}


def _name(collection: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,200}", collection) or collection in (".", ".."):
        raise InvalidInputError(
            f"collection {collection!r}: use letters, digits, '-', '_' and '.', at most 200"
        )
    return collection
