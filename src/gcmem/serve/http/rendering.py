"""gcmem's values as plain JSON objects, in the shapes of `reply_schemas`.

Written by hand and not validated, for speed: a reply holds up to a few hundred of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from gcmem.serve.http.limits import Limits
from gcmem.serve.http.sizes import Items, Room, json_object
from gcmem.types import Answer, Candidate, Chunk, Conflict, SearchResult, Shadow, Timings

JSON = dict[str, Any]

shows_seq: ContextVar[bool] = ContextVar("gcmem_shows_seq", default=False)
"""Whether the caller may see sequence numbers, which count what everybody writes.

Set once per request, when the caller is identified, so that no route can forget it.
"""


def time_json(at: datetime | None) -> str | None:
    """Returns a time as ISO 8601 with its zone."""
    return None if at is None else at.isoformat()


def chunk_json(chunk: Chunk) -> JSON:
    """Returns a chunk."""
    return {
        "id": chunk.id,
        "text": chunk.text,
        "at": time_json(chunk.at),
        "recorded_at": time_json(chunk.recorded_at),
        "seq": chunk.seq if shows_seq.get() else None,
        "user_id": chunk.scope.user_id,
        "agent_id": chunk.scope.agent_id,
        "run_id": chunk.scope.run_id,
        "speaker": chunk.speaker,
        "session": chunk.session,
        "metadata": chunk.metadata,
        "trust": chunk.trust,
    }


def candidate_json(candidate: Candidate) -> JSON:
    """Returns a candidate."""
    return {
        "memory": chunk_json(candidate.chunk),
        "relevance": candidate.relevance,
        "origin": candidate.origin,
    }


def conflict_json(conflict: Conflict) -> JSON:
    """Returns a verdict."""
    return {
        "older": conflict.older,
        "newer": conflict.newer,
        "score": conflict.score,
        "oracle": conflict.oracle,
    }


def shadow_json(shadow: Shadow) -> JSON:
    """Returns a shadow with its witness; `older` is always the id of the shadow."""
    return {
        "candidate": candidate_json(shadow.candidate),
        "witness": candidate_json(shadow.witness),
        "conflict": {
            **conflict_json(shadow.conflict),
            "older": shadow.candidate.chunk.id,
            "newer": shadow.witness.chunk.id,
        },
    }


def timings_json(timings: Timings) -> JSON:
    """Returns the milliseconds of each stage."""
    return {
        "encode": round(timings.encode_ms, 3),
        "retrieve": round(timings.retrieve_ms, 3),
        "conflict": round(timings.conflict_ms, 3),
        "dominance": round(timings.dominance_ms, 3),
        "read": round(timings.read_ms, 3),
        "total": round(timings.total_ms, 3),
    }


def search_json(result: SearchResult, *, oracle: JSON, limits: Limits) -> bytes:
    """Returns the result of a search. Kept memories get room first, then shadows."""
    fixed: JSON = {
        "query": result.query,
        "as_of": time_json(result.as_of),
        "ranked": [candidate.chunk.id for candidate in result.ranked],
        "timings_ms": timings_json(result.timings),
        "oracle": oracle,
    }
    room = Room(limits)
    room.spend(len(json_object(fixed)))
    found = {
        "kept": room.take(map(candidate_json, result.kept)),
        "shadows": room.take(map(shadow_json, result.shadows)),
        "undecided": room.take(map(conflict_json, result.undecided)),
        "skewed": room.take(
            {"conflict": conflict_json(skew.conflict), "disagreement_s": skew.disagreement_s}
            for skew in result.skewed
        ),
        "outranked": room.take(map(conflict_json, result.outranked)),
    }
    return json_object({**fixed, **found, "omitted": room.omitted})


def answers_json(answers: Iterable[Answer], *, limits: Limits) -> bytes:
    """Returns the answers of several paths, and as many of the chunks they read as fit."""
    answers = tuple(answers)
    # The paths read different parts of one set.
    candidates = {
        c.chunk.id: c
        for answer in answers
        for c in (*answer.resolution.kept, *(s.candidate for s in answer.resolution.shadows))
    }
    ranked = sorted(candidates.values(), key=lambda c: (-c.relevance, -(c.chunk.seq or 0)))
    replies: list[JSON] = [
        {
            "path": answer.path,
            "text": answer.text,
            "choice": answer.choice,
            "kept": [candidate.chunk.id for candidate in answer.resolution.kept],
        }
        for answer in answers
    ]
    room = Room(limits)
    room.spend(sum(len(json_object(reply)) for reply in replies))
    shown = room.take(candidate_json(candidate) for candidate in ranked)
    shadows = [room.take(map(shadow_json, answer.resolution.shadows)) for answer in answers]
    return json_object(
        {
            "answers": Items(
                json_object({**reply, "shadows": removed})
                for reply, removed in zip(replies, shadows, strict=True)
            ),
            "candidates": shown,
            "omitted": room.omitted,
            "timings_ms": timings_json(answers[0].timings),
        }
    )
