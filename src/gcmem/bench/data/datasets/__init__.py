"""Loaders for other people's datasets, from the files that their authors publish.

None of the data comes with gcmem: download it, under its own licence, and name the file. Each
module's docstring says where from, under which licence, and what of the format was verified.
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
        "statebench": statebench.load,
        "wikicontradict": wikicontradict.load,
    }
)


def load_dataset(name: str, path: Path, *, limit: int | None = None) -> tuple[Instance, ...]:
    """Reads the dataset of that name; where the path holds none, the error says where to get it."""
    if name not in LOADERS:
        raise InvalidInputError(f"no dataset {name!r}: one of {', '.join(LOADERS)}")
    return LOADERS[name](path, limit=limit)
