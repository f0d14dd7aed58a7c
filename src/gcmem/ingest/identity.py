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


def chunk_id(turn: Turn, piece: int) -> str:
    """Returns the id of one piece of a turn; the first piece takes the turn's own id, if any."""
    if turn.id is None:
        return str(uuid.uuid4())
    return turn.id if piece == 0 else f"{turn.id}.{piece + 1}"
