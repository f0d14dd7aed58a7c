"""Fast, deterministic stand-ins for the models."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gcmem.protocols import Vectors
from gcmem.types import CandidateSet, Chunk, Conflict


class HashEncoder:
    """Hashes words into a small unit vector; texts that share words are similar."""

    def __init__(self, *, dimensions: int = 32, name: str = "hash") -> None:
        self.dimensions = dimensions
        self.id = f"{name}-{dimensions}@1"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one unit vector per text."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.casefold()) or [text]:
                digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
                row[int.from_bytes(digest[:2]) % self.dimensions] += 1 if digest[2] % 2 else -1
            if not row.any():  # the words cancel each other out
                row[0] = 1
            row /= np.linalg.norm(row)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Counts words."""
        return [len(text.split()) for text in texts]


class RuleOracle:
    """Judges every pair by a rule over the two chunks."""

    id = "rule@1"

    def __init__(self, rule: Callable[[Chunk, Chunk], bool]) -> None:
        self._rule = rule

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the pairs for which the rule is true, in either order."""
        return tuple(
            Conflict(older=a.chunk.id, newer=b.chunk.id, score=1.0, oracle=self.id)
            for a, b in combinations(candidates, 2)
            if self._rule(a.chunk, b.chunk) or self._rule(b.chunk, a.chunk)
        )


class ScriptedChat:
    """A chat model that replies from a list and records requests; it raises errors in the list."""

    id = "scripted"

    def __init__(self, replies: Sequence[dict[str, Any] | Exception]) -> None:
        self._replies = list(replies)
        self.requests: list[tuple[str, str, dict[str, Any]]] = []

    def complete(
        self, *, system: str, user: str, schema: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Returns the next reply, at one token each."""
        self.requests.append((system, user, schema))
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply, 1
