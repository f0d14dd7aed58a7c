"""Loaders for third-party datasets, from the files that their authors publish.

gcmem ships none of the data: download it under its own licence and pass the path. Each module's
docstring gives the source, the licence, and which parts of the format were verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from gcmem.bench.data.datasets import (
    factconsolidation,
    locomo,
    longmemeval,
    memora,
    statebench,
    wikicontradict,
)
from gcmem.bench.data.instances import Instance
from gcmem.errors import InvalidInputError

__all__ = ["LOADERS", "Loader", "load_dataset"]


class Loader(Protocol):
    """Reads a downloaded dataset, at most `limit` instances of it."""

    def __call__(self, path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
        """Returns the instances of a file, or of a folder with one such file."""
        ...


LOADERS: Mapping[str, Loader] = MappingProxyType(
    {
        "factconsolidation": factconsolidation.load,
        "locomo": locomo.load,
        "longmemeval": longmemeval.load,
        "memora": memora.load,
        "statebench": statebench.load,
        "wikicontradict": wikicontradict.load,
    }
)


def load_dataset(name: str, path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
    """Reads a dataset by name; if the path has no data, the error says where to download it."""
    if name not in LOADERS:
        raise InvalidInputError(f"no dataset {name!r}: pass one of {', '.join(LOADERS)}")
    return LOADERS[name](path, limit=limit)
