"""What is indexed of a chunk: its text, with the speaker, and for words also with the date."""

from __future__ import annotations

from collections.abc import Sequence

from gcmem.protocols import Encoder
from gcmem.types import Chunk

MONTHS = (
    "January February March April May June July August September October November December".split()
)
TEXT_VERSION = 2
"""How texts are embedded. Version 1 was the bare text; `gcmem reindex` moves a store on."""


def dense_text(text: str, *, speaker: str, version: int = TEXT_VERSION) -> str:
    """Returns what the encoder reads: questions often name who said something."""
    return text if version < TEXT_VERSION else f"{speaker}: {text}"


def dense_texts(chunks: Sequence[Chunk], *, version: int) -> list[str]:
    """Returns what the encoder reads of each chunk."""
    return [dense_text(chunk.text, speaker=chunk.speaker, version=version) for chunk in chunks]


def lexical_text(chunk: Chunk) -> str:
    """Returns the text whose words are searched: with the speaker, and the date in words."""
    assert chunk.at is not None
    at = chunk.at
    return f"{at.day} {MONTHS[at.month - 1]} {at.year} {chunk.speaker}: {chunk.text}"


def rebuild_id(encoder: Encoder) -> str:
    """Names what makes the vectors of a rebuild: it may go on only with the same."""
    return f"{encoder.id} text@{TEXT_VERSION}"
