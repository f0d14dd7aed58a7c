"""Where the memory is, and its encoder: by flags, else the environment, else the config file."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gcmem.errors import InvalidInputError
from gcmem.memory import DEFAULT_PATH
from gcmem.store.redact import redacted
from gcmem.store.sqlite.file import IN_MEMORY
from gcmem.store.urls import sqlite_path

CONFIG = Path("~/.gcmem/config.toml")
KEYS = ("path", "store", "stm", "encoder")
Source = Literal["flags", "environment", "config file", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The store's URL or path, its source, the recency buffer's URL and the encoder's name."""

    store: str
    stm: str | None
    source: Source
    config: Path | None
    encoder: str = "local"

    @property
    def path(self) -> Path | None:
        """The file of the embedded store; None if the store is a server."""
        path = sqlite_path(self.store)
        return None if path is None else Path(path).expanduser()

    def check_folder(self) -> None:
        """Raises an error if the store is a file in a folder that does not exist."""
        if self.path is not None and str(self.path) != IN_MEMORY:
            check_folder(self.path)

    @property
    def flag(self) -> str:
        """The option that makes another command use the same store, with a leading space."""
        if self.source != "flags":
            return ""
        return f" --store {self.shown}" if "://" in self.store else f" --path {self.shown}"

    @property
    def shown(self) -> str:
        """The store's URL or path without its password."""
        return redacted(self.store)


def locate(
    *,
    path: Path | None = None,
    store: str | None = None,
    stm: str | None = None,
    encoder: str | None = None,
) -> Location:
    """Returns where the memory is; an empty --stm turns the recency buffer off."""
    config, file = _config()
    levels: tuple[tuple[Source, dict[str, str]], ...] = (
        ("flags", _given(path=str(path) if path else None, store=store)),
        ("environment", _environment()),
        ("config file", file),
    )
    if stm is None:
        stm = next((level["stm"] for _, level in levels if "stm" in level), None)
    named = [encoder, *(level.get("encoder") for _, level in levels)]
    encoder = next((name for name in named if name), "local")
    for source, level in levels:
        if "path" in level and "store" in level:
            raise InvalidInputError(
                f"a path and a store are both given ({source}); give one of them"
            )
        if chosen := level.get("store") or level.get("path"):
            return Location(
                store=chosen, stm=stm or None, source=source, config=config, encoder=encoder
            )
    return Location(
        store=str(DEFAULT_PATH), stm=stm or None, source="default", config=config, encoder=encoder
    )


def check_folder(file: Path) -> None:
    """Raises an error if the folder of a file is missing; creates only the default folder."""
    folder = file.expanduser().parent
    if folder.is_dir():
        return
    if folder.exists():
        raise InvalidInputError(f"{folder} is a file, not a folder; choose another path")
    if folder != DEFAULT_PATH.expanduser().parent:
        raise InvalidInputError(f"there is no folder {folder}; make it first: mkdir -p {folder}")
    try:
        folder.mkdir(mode=0o700)  # memories are for their owner alone
    except OSError as error:
        raise InvalidInputError(f"can't make the folder {folder}: {error.strerror}") from None


def _given(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _environment() -> dict[str, str]:
    return _given(**{key: os.environ.get(f"GCMEM_{key.upper()}") for key in KEYS})


def _config() -> tuple[Path | None, dict[str, str]]:
    """Reads the config file; the one that $GCMEM_CONFIG names must exist."""
    named = os.environ.get("GCMEM_CONFIG")
    file = Path(named or CONFIG).expanduser()
    if not named and not file.exists():
        return None, {}
    try:
        settings = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InvalidInputError(f"can't read the config file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file} is not TOML: {error}") from None
    unknown = sorted(settings.keys() - set(KEYS))
    if unknown or not all(isinstance(value, str) for value in settings.values()):
        raise InvalidInputError(
            f"{file}: set path, store, stm or encoder, each to a string"
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
        )
    if settings.get("path"):
        settings["path"] = str(file.parent / Path(settings["path"]).expanduser())
    kind, colon, rest = settings.get("encoder", "").partition(":")
    if colon:  # onnx:FOLDER or gguf:FILE, perhaps with ?settings
        model, mark, query = rest.partition("?")
        settings["encoder"] = f"{kind}:{file.parent / Path(model).expanduser()}{mark}{query}"
    return file, _given(**settings)
