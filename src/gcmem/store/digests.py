"""Keys that every engine makes in the same way."""

from __future__ import annotations

import hashlib


def question_digest(question: str) -> bytes:
    """Returns the key of a question; its case does not matter."""
    return hashlib.blake2b(question.casefold().encode(), digest_size=8).digest()
