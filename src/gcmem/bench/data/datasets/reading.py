"""Finds downloaded files and reads their rows; errors name the file and row."""

from __future__ import annotations

import csv
import importlib
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.errors import DatasetNotFoundError, InvalidInputError

MONTHS = {
    name: number
    for number, name in enumerate(
        "january february march april may june july august september october november "
        "december".split(),
        1,
    )
}
"""English in every dataset; `strptime` would depend on the machine's locale."""
LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A dataset's name, its file patterns (preferred first), and its download location."""

    name: str
    files: tuple[str, ...]
    download: str

    def missing(self, path: Path) -> DatasetNotFoundError:
        """Returns the error for a path without data of this dataset."""
        wanted = " or ".join(self.files)
        return DatasetNotFoundError(self.name, path=path, wanted=wanted, download=self.download)

    def find(self, path: Path) -> Path:
        """Returns the path if it is a file, else the dataset's only file in that folder."""
        if path.is_file():
            return path
        for pattern in self.files:
            found = sorted(path.glob(pattern)) if path.is_dir() else []
            if len(found) > 1:
                names = ", ".join(str(file.relative_to(path)) for file in found)
                raise InvalidInputError(f"{path} has several files ({names}): pass one of them")
            if found:
                return found[0]
        raise self.missing(path)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file, with its location for error messages."""

    file: Path
    place: str
    values: Mapping[str, Any]


@contextmanager
def locate_errors(file: Path, place: str) -> Iterator[None]:
    """Converts errors while reading a row into InvalidInputError with file and place."""
    try:
        yield
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        reason = f"{error} is missing" if type(error) is KeyError else str(error)
        raise InvalidInputError(f"{file}, {place}: {reason}") from None


def read_rows(file: Path) -> Iterator[Row]:
    """Yields the rows of a .json, .jsonl, .jsonl.xz, .csv or .parquet file (no suffix: JSON)."""
    readers = {
        ".json": _json,
        ".jsonl": _jsonl,
        ".xz": _jsonl,
        ".csv": _csv,
        ".parquet": _parquet,
    }
    reader = readers.get(file.suffix.lower() or ".json")
    if reader is None:
        raise InvalidInputError(f"{file}: a data file must end in one of {', '.join(readers)}")
    try:
        for row in reader(file):
            if not isinstance(row.values, Mapping):
                raise InvalidInputError(f"{file}, {row.place}: a row must be an object with fields")
            yield row
    except (OSError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise InvalidInputError(f"can't read {file}: {error}") from None


def _json(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8") as stream:
        try:
            rows = json.load(stream)
        except json.JSONDecodeError as error:
            raise InvalidInputError(f"{file} is not valid JSON: {error}") from None
    for number, values in enumerate(rows if isinstance(rows, list) else [rows], 1):
        yield Row(file, f"row {number}", values)


def _jsonl(file: Path) -> Iterator[Row]:
    with _open_text(file) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                with locate_errors(file, f"line {number}"):
                    values = json.loads(line)
                yield Row(file, f"line {number}", values)


def _open_text(file: Path) -> TextIO:
    return (
        lzma.open(file, "rt", encoding="utf-8")
        if file.suffix == ".xz"
        else file.open("r", encoding="utf-8")
    )


def _csv(file: Path) -> Iterator[Row]:
    # utf-8-sig: a file saved by a spreadsheet may start with a byte order mark.
    with file.open(encoding="utf-8-sig", newline="") as stream:
        try:
            for number, values in enumerate(csv.DictReader(stream, strict=True), 1):
                yield Row(file, f"row {number}", values)
        except csv.Error as error:
            raise InvalidInputError(f"{file} is not valid CSV: {error}") from None


def _parquet(file: Path) -> Iterator[Row]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidInputError(
            f"{file} is a parquet file, which needs pyarrow: run pip install pyarrow, "
            "or export the rows as JSON lines (.jsonl)"
        ) from None
    try:
        rows = parquet.read_table(file).to_pylist()
    except (ValueError, TypeError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise InvalidInputError(f"{file} is not valid parquet: {error}") from None
    for number, values in enumerate(rows, 1):
        yield Row(file, f"row {number}", values)


def text_of(values: Mapping[str, Any], key: str) -> str:
    """Returns a field as text; numbers are converted, and an empty field is an error."""
    value = values[key]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{key!r} must be a text, not {type(value).__name__}")
    text = str(value).strip()
    if not text:
        raise ValueError(f"{key!r} is empty")
    return text


def list_of(values: Mapping[str, Any], key: str) -> Sequence[Any]:
    """Returns a field that must be a list."""
    value = values[key]
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{key!r} must be a list, not {type(value).__name__}")
    return value


def utc_time(year: int, month: int, day: int, hour: int, minute: int) -> datetime:
    """Returns a time in UTC, for datasets that give no timezone."""
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def first(instances: Iterable[Instance], limit: int | None) -> tuple[Instance, ...]:
    """Returns at most `limit` instances, or all if it is None."""
    if limit is not None and limit < 0:
        raise InvalidInputError(f"limit={limit}: pass 0 or more, or None for all")
    return tuple(islice(instances, limit))


def in_time_order(turns: Iterable[BenchTurn]) -> tuple[BenchTurn, ...]:
    """Returns the turns sorted by event time, then by order of arrival."""
    return tuple(sorted(turns, key=lambda turn: (turn.at or LAST, turn.recorded)))
