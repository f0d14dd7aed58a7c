"""mem0's memories: a JSON list, {"results": [...]} as its API returns them, or one per line.

The text is `memory`; the event time is `updated_at` or else `created_at`. A memory that changed in
mem0 since the last import becomes a new chunk: the old one stays, and the newer one counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gcmem.errors import TransferFormatError
from gcmem.transfer.jsonl import open_binary, row_of
from gcmem.transfer.rows import BadRow, ForeignRows, Row

ID_KEY = "mem0_id"
"""The metadata key under which a memory's id in mem0 is kept."""
KNOWN_KEYS = {
    "id", "memory", "user_id", "agent_id", "run_id", "created_at", "updated_at", "metadata", "role",
}  # fmt: skip


class Mem0File:
    """A file of mem0 memories as a source of rows; read into memory at once."""

    encoder_id = None
    digest = None

    def __init__(self, path: Path, *, foreign: ForeignRows) -> None:
        self.name = str(path)
        self._foreign = foreign
        with open_binary(path) as file:
            self._memories = _memories(file.read(), name=self.name)
        self.count: int | None = len(self._memories)

    def rows(self, *, vectors: bool) -> Iterator[Row | BadRow]:
        """Yields the memories in the order of the file; `line` is the memory's number."""
        for number, memory in enumerate(self._memories, 1):
            if not isinstance(memory, Mapping):
                yield BadRow(line=number, reason="not a memory: expected a JSON object")
            elif not isinstance(memory.get("metadata"), Mapping | None):
                yield BadRow(line=number, reason="its metadata is not a JSON object")
            else:
                yield row_of(_record(memory), line=number, foreign=self._foreign, vectors=False)


def _record(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a memory as a foreign row; fields that gcmem lacks go into the metadata."""
    rest = {
        key: value for key, value in memory.items() if key not in KNOWN_KEYS and value is not None
    }
    metadata = dict(memory.get("metadata") or {})
    if memory.get("id") is not None:
        metadata[ID_KEY] = str(memory["id"])
    if rest:
        metadata["mem0"] = rest
    return {
        "text": memory.get("memory"),
        "at": memory.get("updated_at") or memory.get("created_at"),
        "user_id": memory.get("user_id"),
        "agent_id": memory.get("agent_id"),
        "run_id": memory.get("run_id"),
        "speaker": memory.get("role"),
        "metadata": metadata,
    }


def _memories(content: bytes, *, name: str) -> list[Any]:
    if not content.strip():
        raise TransferFormatError(f"{name} is empty")
    try:
        document = json.loads(content)
    except UnicodeDecodeError:
        raise TransferFormatError(f"{name} is not UTF-8 text") from None
    except (ValueError, RecursionError):
        document = _lines(content, name=name)
    if isinstance(document, Mapping):
        document = document.get("results", [document] if "memory" in document else None)
    if not isinstance(document, list):
        raise TransferFormatError(
            f'{name} is not a mem0 export: expected a list of memories, or {{"results": [...]}}'
        )
    return document


def _lines(content: bytes, *, name: str) -> list[Any]:
    found = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError):
                raise TransferFormatError(f"{name}, line {number}: not JSON") from None
    return found
