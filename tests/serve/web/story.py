"""A year of one person's memory in which several facts change."""

from __future__ import annotations

from pathlib import Path

from gcmem import Memory
from gcmem.ingest import read_session_file

FILE = Path(__file__).with_name("story.jsonl")
USER = "ana"


def remember_story(memory: Memory) -> None:
    """Adds the story and judges it."""
    memory.add(read_session_file(FILE), user_id=USER)
    memory.judge()
