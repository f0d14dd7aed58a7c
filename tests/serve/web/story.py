"""A year of one person's memory in which several facts change, and the questions about them."""

from __future__ import annotations

from pathlib import Path

from gcmem import Memory
from gcmem.ingest import read_session_file

FILE = Path(__file__).with_name("story.jsonl")
USER = "ana"
QUESTIONS = {
    "Which city do I live in?": ("Porto", "Lyon"),
    "Which port does the staging API listen on?": ("8080", "9090"),
    "Who supplies our coffee beans?": ("Delta", "Mokka"),
    "Who is on call?": ("Marta", "Jonas"),
    "When do we open the shop?": ("at 7", "at 8"),
    "Am I a vegetarian?": ("vegetarian", "eats meat"),
    "Which database do we run?": ("PostgreSQL 15", "PostgreSQL 18"),
}


def remember_story(memory: Memory) -> None:
    """Adds the story and asks every question, so that the conflicts are known."""
    memory.add(read_session_file(FILE), user_id=USER)
    for question, options in QUESTIONS.items():
        memory.ask(question, user_id=USER, options=options)
