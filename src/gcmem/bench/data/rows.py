"""Reads files of JSON objects with precise error locations, and writes files atomically."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gcmem.errors import InvalidInputError, StoreUnavailableError
from gcmem.private_files import make_private_folder, write_private
from gcmem.types import is_storable


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the objects of a JSON list or JSONL, each with its location for error messages."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"can't read {path}: {error}") from None
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("["):
            raise InvalidInputError(f"{path} is not valid JSON: {error}") from None
        rows = _lines(path, text)
    else:
        listed = whole if isinstance(whole, list) else [whole]
        rows = ((f"{path}, entry {n}", row) for n, row in enumerate(listed, 1))
    for place, row in rows:
        if not isinstance(row, dict):
            raise InvalidInputError(f"{place}: expected an object, not {type(row).__name__}")
        yield place, row


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    # Not splitlines: it also splits at Unicode line breaks, which JSON strings may contain.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield f"{path}, line {number}", json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"{path}, line {number} is not valid JSON: {error}") from None


def text_in(row: dict[str, Any], key: str, *, place: str) -> str:
    """Returns a text field of a row, stripped."""
    return _text(row.get(key), f"{place}: {key!r}")


def texts_in(row: dict[str, Any], key: str, *, place: str, least: int = 0) -> tuple[str, ...]:
    """Returns a list field of distinct texts; a missing field is an empty list."""
    values = row.get(key, [])
    if not isinstance(values, list):
        raise InvalidInputError(f"{place}: {key!r} must be a list of texts")
    texts = tuple(_text(value, f"{place}: {key!r} {n}") for n, value in enumerate(values, 1))
    if len(texts) < least:
        raise InvalidInputError(f"{place}: {key!r} needs {least} or more texts, not {len(texts)}")
    if len({text.casefold() for text in texts}) < len(texts):
        raise InvalidInputError(f"{place}: {key!r} has the same text twice")
    return texts


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"{what} must be a non-empty text, not {value!r}")
    if not is_storable(value):
        raise InvalidInputError(f"{what} contains a NUL or a lone surrogate")
    return value.strip()


def write_atomically(path: Path, text: str) -> None:
    """Writes a file atomically: readers see the old content or the new, never a part."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    make_folder(path.parent)
    try:
        write_private(temporary, text)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StoreUnavailableError(f"can't write {path}: {error}") from error


def make_folder(path: Path) -> None:
    """Creates a folder and its parents; an existing one is left unchanged."""
    try:
        make_private_folder(path)
    except OSError as error:
        raise StoreUnavailableError(f"can't create the folder {path}: {error}") from error
