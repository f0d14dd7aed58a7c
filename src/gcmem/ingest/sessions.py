"""Reads session files: JSONL, and the formats in which chat products export conversations.

| format               | recognised by                                                   |
|----------------------|-----------------------------------------------------------------|
| JSONL                | one message object (or one conversation object) per line        |
| list of messages     | `[{"role": …, "content": …, "timestamp": …}, …]`, also Slack    |
| chat-API request     | `{"messages": [...]}`                                           |
| ShareGPT             | `{"conversations": [{"from": …, "value": …}]}`                  |
| ChatGPT export       | `[{"title": …, "mapping": {id: {"message": …}}}]`               |
| Claude export        | `[{"name": …, "chat_messages": [{"sender": …, "text": …}]}]`    |
| plain text           | a `.txt` file, one turn per line                                |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

from gcmem.errors import InvalidInputError, SessionFormatError
from gcmem.ingest.turns import is_textless, turn_from_dict
from gcmem.message_fields import first, flatten
from gcmem.types import Turn

TOO_DEEP = "its JSON is nested too deeply"
LIST_KEYS = ("messages", "conversations", "chat_messages", "turns", "events")
CONVERSATION_ID_KEYS = ("session", "session_id", "uuid", "conversation_id", "id", "title", "name")


def read_session_file(path: Path, *, tz: tzinfo | None = None) -> tuple[Turn, ...]:
    """Returns the turns of a session file in order; times without a timezone are read as `tz`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SessionFormatError(f"{path} is not UTF-8 text: {error}") from None
    except OSError as error:
        raise SessionFormatError(f"can't read {path}: {error.strerror}") from None
    if not text.strip():
        raise SessionFormatError(f"{path} is empty")
    if path.suffix.lower() in (".txt", ".md"):
        return tuple(Turn(text=line.strip()) for line in text.splitlines() if line.strip())
    turns: list[Turn] = []
    for where, document in _documents(path, text):
        try:
            turns.extend(_turns(document, session=None, tz=tz))
        except InvalidInputError as error:
            raise SessionFormatError(f"{where}: {error}") from None
        except RecursionError:
            raise SessionFormatError(f"{where}: {TOO_DEEP}") from None
    if not turns:
        raise SessionFormatError(f"{path} contains no message with text")
    return tuple(turns)


def _documents(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yields each JSON document with its place: the whole file, or one line."""
    try:
        yield str(path), json.loads(text)
        return
    except json.JSONDecodeError as error:
        whole_file_error = error
    except RecursionError:
        raise SessionFormatError(f"{path}: {TOO_DEEP}") from None
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    for number, line in lines:
        try:
            document = json.loads(line)
        except json.JSONDecodeError as error:
            shown = error if len(lines) > 1 and number > 1 else whole_file_error
            raise SessionFormatError(
                f"{path}, line {number}: neither JSON nor JSONL ({shown.msg})"
            ) from None
        except RecursionError:
            raise SessionFormatError(f"{path}, line {number}: {TOO_DEEP}") from None
        yield f"{path}, line {number}", document


def _turns(document: Any, *, session: str | None, tz: tzinfo | None) -> Iterator[Turn]:
    if isinstance(document, list):
        for item in document:
            yield from _turns(item, session=session, tz=tz)
    elif not isinstance(document, Mapping):
        raise SessionFormatError(f"expected a message object, found {type(document).__name__}")
    elif isinstance(document.get("mapping"), Mapping):
        yield from _chatgpt(document, tz=tz)
    elif (
        key := next((k for k in LIST_KEYS if isinstance(document.get(k), list)), None)
    ) is not None:
        name = first(document, CONVERSATION_ID_KEYS)
        yield from _turns(document[key], session=session if name is None else str(name), tz=tz)
    elif not is_textless(document):
        turn = turn_from_dict(document, tz=tz)
        if turn.text.strip():
            yield Turn(
                text=turn.text,
                at=turn.at,
                speaker=turn.speaker,
                session=turn.session or session,
                metadata=turn.metadata,
            )


def _chatgpt(document: Mapping[str, Any], *, tz: tzinfo | None) -> Iterator[Turn]:
    """Yields the turns of the export's message tree on the branch that the user ended on."""
    nodes = {key: node for key, node in document["mapping"].items() if isinstance(node, Mapping)}
    node_id = document.get("current_node") or next(reversed(list(nodes)), None)
    branch = []
    seen: set[str] = set()
    while node_id in nodes and node_id not in seen:
        seen.add(str(node_id))
        branch.append(nodes[str(node_id)])
        node_id = nodes[str(node_id)].get("parent")
    name = first(document, ("conversation_id", "id", "title"))
    for node in reversed(branch):
        message = node.get("message")
        if not isinstance(message, Mapping) or not flatten(message.get("content") or "").strip():
            continue
        turn = turn_from_dict(message, tz=tz)
        if turn.speaker in ("user", "assistant"):
            yield Turn(
                text=turn.text,
                at=turn.at,
                speaker=turn.speaker,
                session=None if name is None else str(name),
            )
