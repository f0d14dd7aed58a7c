"""OpenAI Agents SDK: a session whose history leaves out messages that are no longer true.

Needs the extra `openai-agents`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from gcmem.errors import MissingExtraError
from gcmem.integrations.transcript import note, superseded
from gcmem.judge.pairs import ASSISTANT
from gcmem.memory import Memory
from gcmem.message_fields import flatten
from gcmem.sentences import states_something
from gcmem.types import Chunk, Scope, Shadow, Turn, check_choice

try:
    from agents.memory.session_settings import SessionSettings, resolve_session_limit
except ModuleNotFoundError:
    raise MissingExtraError("openai-agents", package="openai-agents") from None

Item = dict[str, Any]
HistoryMode = Literal["drop", "annotate"]

ITEM, ITEM_ID = "item", "item_id"
"""Metadata keys: the unchanged SDK item, and the id that its chunks share."""
TRANSCRIPT = "/transcript"
LABEL_CHARS = 300
"""Maximum length of an item's chunk text in the transcript. The metadata holds the whole item."""


class GCMemSession:
    """A conversation stored in a `Memory`: pass it as `session=` to `Runner.run`.

    The transcript keeps every item unchanged. The user's statements are also stored under
    `user_id` and `run_id=session_id`, where other sessions and `memory.search` find them.
    The model sees the result of `get_items`: it leaves out messages that a newer statement of the
    user contradicts, in any session (`mode="drop"`), or marks them (`"annotate"`).
    """

    def __init__(
        self,
        session_id: str,
        *,
        memory: Memory,
        user_id: str | None = None,
        agent_id: str | None = None,
        mode: HistoryMode = "drop",
        window: int = 100,
        session_settings: SessionSettings | None = None,
    ) -> None:
        """Opens the session; the newest `window` statements are compared.

        An unqualified oracle only annotates, as in `Memory.search`.
        """
        check_choice(mode, name="mode", allowed=get_args(HistoryMode))
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._scope = Scope(user_id=user_id, agent_id=agent_id, run_id=session_id)
        self._transcript = Scope(run_id=f"{session_id}{TRANSCRIPT}").run_id
        self._drops = mode == "drop" and memory.removes
        self._window = window

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Returns the newest `limit` items that are still true, oldest first."""
        limit = resolve_session_limit(limit, self.session_settings)
        return await asyncio.to_thread(self._live_items, limit)

    async def add_items(self, items: Sequence[Item]) -> None:
        """Stores items, and the user's statements in them."""
        await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> Item | None:
        """Deletes the newest item, true or not, and returns it."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Deletes the session and the statements stored from it."""
        await asyncio.to_thread(self._clear)

    async def all_items(self) -> list[Item]:
        """Returns every item unchanged, for people to read."""
        return await asyncio.to_thread(lambda: [dict(r.metadata[ITEM]) for r in self._records()])

    async def shadows(self) -> tuple[Shadow, ...]:
        """Returns the messages left out of the session's history, each with its witness."""
        return await asyncio.to_thread(lambda: tuple(self._stale(self._records()).values()))

    def _records(self) -> list[Chunk]:
        """Returns the transcript, one chunk per item."""
        chunks = self._memory.get_all(run_id=self._transcript)
        first = {chunk.metadata[ITEM_ID]: chunk for chunk in reversed(chunks)}
        return list(reversed(first.values()))

    def _add(self, items: Sequence[Item]) -> None:
        records, statements = [], []
        for item in items:
            text, speaker = _text(item), _speaker(item)
            link = {ITEM_ID: str(uuid.uuid4())}
            label = text.strip()[:LABEL_CHARS] or str(item.get("type", "item"))
            records.append(Turn(text=label, speaker=speaker, metadata={**link, ITEM: dict(item)}))
            if speaker == "user" and states_something(text):
                statements.append(
                    Turn(text=text, speaker=speaker, session=self.session_id, metadata=link)
                )
        # The transcript first: one write stores all of it, and the SDK reads nothing else.
        self._memory.add(records, run_id=self._transcript)
        self._memory.add(
            statements,
            user_id=self._scope.user_id,
            agent_id=self._scope.agent_id,
            run_id=self._scope.run_id,
        )

    def _pop(self) -> Item | None:
        records = self._records()
        if not records:
            return None
        item: Item = dict(records[-1].metadata[ITEM])
        filters = {ITEM_ID: records[-1].metadata[ITEM_ID]}
        self._memory.forget(run_id=self.session_id, filters=filters)
        self._memory.forget(run_id=self._transcript, filters=filters)
        return item

    def _clear(self) -> None:
        self._memory.forget(
            user_id=self._scope.user_id, agent_id=self._scope.agent_id, run_id=self.session_id
        )
        self._memory.forget(run_id=self._transcript)

    def _stale(self, records: Sequence[Chunk]) -> dict[str, Shadow]:
        """Returns the shadows of the session's items, by item id."""
        scope = self._scope
        # Use the user's statements from every session; without a user, only the session's own.
        heard = self._memory.history(
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            run_id=None if scope.user_id else scope.run_id,
            newest_first=True,
            limit=self._window,
        )
        said = [
            replace(record, scope=scope, text=_text(record.metadata[ITEM]))
            for record in records
            if record.speaker == ASSISTANT
        ]
        shadows = superseded([*heard, *said[-self._window :]], resolver=self._memory.read_resolver)
        # A message of several chunks stays while one of them is still true.
        live = {c.metadata.get(ITEM_ID) for c in heard if c.id not in shadows}
        stale = {s.candidate.chunk.metadata.get(ITEM_ID): s for s in shadows.values()}
        mine = [str(record.metadata[ITEM_ID]) for record in records]
        return {i: stale[i] for i in mine if i in stale and i not in live}

    def _live_items(self, limit: int | None) -> list[Item]:
        records = self._records()
        stale = self._stale(records)
        items: list[Item] = []
        for record in records:
            item: Item = dict(record.metadata[ITEM])
            shadow = stale.get(record.metadata[ITEM_ID])
            if shadow is None:
                items.append(item)
            elif not self._drops:
                items.append(_annotated(item, note(shadow)))
            elif record.speaker == ASSISTANT:
                # The API rejects reasoning without the message that follows it.
                while items and items[-1].get("type") == "reasoning":
                    items.pop()
        return items if limit is None else items[max(0, len(items) - limit) :]


def _text(item: Item) -> str:
    """Returns the text of a message; empty for tool calls, their results and reasoning."""
    return flatten(item.get("content") or "") if item.get("type", "message") == "message" else ""


def _speaker(item: Item) -> str:
    return str(item.get("role") or "tool")


def _annotated(item: Item, mark: str) -> Item:
    content = item["content"]
    if isinstance(content, str):
        return {**item, "content": f"{mark}\n{content}"}
    parts = [dict(part) for part in content]
    spoken = next(part for part in parts if part.get("text"))
    spoken["text"] = f"{mark}\n{spoken['text']}"
    return {**item, "content": parts}
