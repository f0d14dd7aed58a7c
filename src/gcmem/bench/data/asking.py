"""Calls of chat models that are paid for once: kept on disk, counted, and held to a budget."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from gcmem.bench.data.rows import write_whole
from gcmem.errors import ModelNotFoundError, ModelResponseError
from gcmem.protocols import ChatModel

T = TypeVar("T")

TRIES = 2
"""How often a question is put whose reply can't be read; `OpenAIChat` repeats it on its own too."""
AGAIN = "\n\nReply only with a JSON object in the asked form, and fill in every field. (Try {})"
MALFORMED = "malformed"


class BudgetSpentError(Exception):
    """A call would have to be paid for, and the budget is spent; it never leaves the pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the questions took: `calls` and `tokens` were paid for, `cached_calls` were not.

    `malformed` counts the replies, new or kept, that could not be read.
    """

    calls: int = 0
    cached_calls: int = 0
    tokens: int = 0
    malformed: int = 0


class Asker:
    """Puts questions to chat models and keeps every reply in a folder, under the request's hash.

    A reply that was not in the asked form is kept as well, under `malformed`: delete that folder
    to have those questions put again, for example with more room for the reply.
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
        """Returns what `read` makes of the reply; None where no try gave one that it can read.

        `read` raises KeyError, TypeError or ValueError at a reply that is not as it should be.
        """
        for attempt in range(1, TRIES + 1):
            # The same words again would, at temperature 0, bring the same reply again.
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
        """Returns the kept or the new reply; None where it is not in the asked form."""
        request = {"model": model.id, "system": system, "user": user, "schema": schema}
        canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
        name = f"{hashlib.sha256(canonical.encode()).hexdigest()}.json"
        kept, unread = self._folder / name, self._folder / MALFORMED / name
        for path in (kept, unread):
            known = _kept(path)
            if known is not None:
                self._count(cached_calls=1)
                return known["reply"] if path is kept else None
        self._check_budget()
        reply: dict[str, Any] | None = None
        try:
            reply, tokens = model.complete(system=system, user=user, schema=schema)
        except ModelNotFoundError:
            raise  # a wrong model name must not pass for a reply that can't be read
        except ModelResponseError as error:
            tokens = error.tokens
        # Counted first: it is paid for, whether or not it can be kept.
        self._count(calls=1, tokens=tokens)
        content = {"model": model.id, "tokens": tokens, "reply": reply}
        path = unread if reply is None else kept
        write_whole(path, json.dumps(content) + "\n")
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


def _kept(path: Path) -> dict[str, Any] | None:
    """Returns a file of the cache; one that is damaged counts as missing."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and "reply" in content else None
