"""Makes message ids from content, so that a second import of a file finds the stored messages."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gcmem.types import Scope, Turn

NAMESPACE = uuid.UUID("4b1f2a60-5d53-5c0e-8a39-2f3d0c6b7e11")


def name_turns(turns: Sequence[Turn], *, scope: Scope, source: str) -> tuple[Turn, ...]:
    """Returns the turns with ids made from scope, session, speaker, time and text.

    Repeated turns get distinct ids. For a turn without a time, `source` (its file) takes the place
    of the time: the same words in another file were said at another time.
    """
    seen: Counter[str] = Counter()
    named = []
    for turn in turns:
        content = json.dumps(
            [
                scope.user_id,
                scope.agent_id,
                scope.run_id,
                turn.session,
                turn.speaker,
                source if turn.at is None else turn.at.isoformat(),
                turn.text,
            ]
        )
        number = seen[content]
        seen[content] += 1
        named.append(replace(turn, id=str(uuid.uuid5(NAMESPACE, f"{number}:{content}"))))
    return tuple(named)


def chunk_ids(turn: Turn, pieces: int) -> list[str]:
    """Returns the ids of the pieces of a turn: its own id or a new one, then `id.2`, `id.3`, …"""
    first = turn.id or str(uuid.uuid4())
    return [first, *(f"{first}.{n}" for n in range(2, pieces + 1))]
