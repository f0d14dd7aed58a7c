"""Calls chat models, caches every reply on disk and stops at a token budget."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from gcmem.bench.data.rows import write_atomically
from gcmem.errors import ModelNotFoundError, ModelResponseError
from gcmem.protocols import ChatModel

T = TypeVar("T")

TRIES = 2
"""Attempts per question if replies are unreadable; `OpenAIChat` adds retries of its own."""
AGAIN = "\n\nReply only with a JSON object in the asked form, and fill in every field. (Try {})"
MALFORMED = "malformed"


class BudgetSpentError(Exception):
    """The token budget is spent and the next call is not cached; caught inside the pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Calls and tokens used: `calls` and `tokens` were paid for, `cached_calls` were free.

    `malformed` counts unreadable replies, cached ones included.
    """

    calls: int = 0
    cached_calls: int = 0
    tokens: int = 0
    malformed: int = 0


class Asker:
    """Asks chat models questions and caches every reply in a folder, by the request's hash.

    Replies that don't fit the schema are cached under `malformed`. Delete that folder to ask
    those questions again, for example with a higher token limit.
    """

    def __init__(self, folder: Path, *, budget_tokens: int | None = None) -> None:
        self._folder = folder
        self._budget_tokens = budget_tokens
        self._lock = threading.Lock()
        self.usage = Usage()

    def ask(
        self,
        model: ChatModel,
        *,
        system: str,
        user: str,
        schema: dict[str, Any],
        read: Callable[[dict[str, Any]], T],
    ) -> T | None:
        """Returns the reply parsed by `read`, or None if every attempt was unreadable.

        `read` raises KeyError, TypeError or ValueError for an invalid reply.
        """
        for attempt in range(1, TRIES + 1):
            # At temperature 0 the same prompt would give the same reply.
            asked = user if attempt == 1 else user + AGAIN.format(attempt)
            reply = self._reply(model, system, asked, schema)
            try:
                if reply is not None:
                    return read(reply)
            except (KeyError, TypeError, ValueError):
                pass
            self._count(malformed=1)
        return None

    def _reply(
        self, model: ChatModel, system: str, user: str, schema: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Returns the cached or new reply, or None if it doesn't fit the schema."""
        request = {"model": model.id, "system": system, "user": user, "schema": schema}
        canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
        name = f"{hashlib.sha256(canonical.encode()).hexdigest()}.json"
        readable, malformed = self._folder / name, self._folder / MALFORMED / name
        for path in (readable, malformed):
            known = _load_cached(path)
            if known is not None:
                self._count(cached_calls=1)
                return known["reply"] if path is readable else None
        self._check_budget()
        reply: dict[str, Any] | None = None
        try:
            reply, tokens = model.complete(system=system, user=user, schema=schema)
        except ModelNotFoundError:
            raise  # a wrong model name must not count as an unreadable reply
        except ModelResponseError as error:
            tokens = error.tokens
        # Counted before writing: it is paid for even if the write fails.
        self._count(calls=1, tokens=tokens)
        content = {"model": model.id, "tokens": tokens, "reply": reply}
        path = malformed if reply is None else readable
        write_atomically(path, json.dumps(content) + "\n")
        return reply

    def _check_budget(self) -> None:
        with self._lock:
            spent = self._budget_tokens is not None and self.usage.tokens >= self._budget_tokens
        if spent:
            raise BudgetSpentError

    def _count(
        self, *, calls: int = 0, cached_calls: int = 0, tokens: int = 0, malformed: int = 0
    ) -> None:
        with self._lock:
            so_far = self.usage
            self.usage = replace(
                so_far,
                calls=so_far.calls + calls,
                cached_calls=so_far.cached_calls + cached_calls,
                tokens=so_far.tokens + tokens,
                malformed=so_far.malformed + malformed,
            )


def _load_cached(path: Path) -> dict[str, Any] | None:
    """Returns a cached file's content; a damaged file counts as missing."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and "reply" in content else None
