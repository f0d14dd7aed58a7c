"""gcmem's values as plain JSON objects, in the shapes of `reply_schemas`.

Written by hand and not validated, for speed: a reply holds up to a few hundred of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from gcmem.outdated import Known, Witness
from gcmem.serve.http.limits import Limits
from gcmem.serve.http.sizes import Items, Room, json_object
from gcmem.types import (
    Answer,
    Candidate,
    Chunk,
    Claim,
    Conflict,
    Doubt,
    SearchResult,
    Shadow,
    Timings,
    Verdict,
)

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
        "struck": [list(span) for span in candidate.struck],
    }


def conflict_json(conflict: Conflict) -> JSON:
    """Returns a conflict; only a verdict from the ledger says which kind of judge, and why."""
    verdict = conflict if isinstance(conflict, Verdict) else None
    return {
        "older": conflict.older,
        "newer": conflict.newer,
        "score": conflict.score,
        "oracle": conflict.oracle,
        "by": None if verdict is None else verdict.by,
        "reason": None if verdict is None else verdict.reason,
    }


def verdict_json(verdict: Verdict) -> JSON:
    """Returns a verdict with the places of its two claims."""
    return {
        **conflict_json(verdict),
        "older_span": list(verdict.older_span),
        "newer_span": list(verdict.newer_span),
        "recorded_at": time_json(verdict.recorded_at),
    }


def claim_json(claim: Claim) -> JSON:
    """Returns a claim; its memory is named by its id."""
    return {
        "text": claim.text,
        "at": time_json(claim.chunk.at),
        "speaker": claim.chunk.speaker,
        "memory": claim.chunk.id,
        "span": list(claim.span),
    }


def witness_json(witness: Witness) -> JSON:
    """Returns the newer memory that ended a memory or may have, and which sentences of it."""
    verdict = witness.verdict
    return {
        "witness": witness.id,
        "score": verdict.score,
        "oracle": verdict.oracle,
        "by": verdict.by,
        "reason": verdict.reason,
        "ended": list(witness.ended),
    }


def known_json(chunk: Chunk, known: Known) -> JSON:
    """Returns a chunk with what is known about it."""
    witness = known.witnesses.get(chunk.id)
    return {
        **chunk_json(chunk),
        "outcome": "current" if witness is None else witness.outcome,
        "shadowed_by": None if witness is None else witness_json(witness),
        "judged": chunk.id not in known.unjudged,
        "pinned": chunk.id in known.pinned,
        "rejected": list(known.rejected.get(chunk.id, ())),
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
        "claim": None if shadow.claim is None else shadow.claim.text,
        "witness_claim": None if shadow.witness_claim is None else shadow.witness_claim.text,
        "whole": shadow.is_whole,
    }


def doubt_json(doubt: Doubt) -> JSON:
    """Returns a memory that may be outdated, with the newer one that may have ended it."""
    return {
        "candidate": candidate_json(doubt.candidate),
        "witness": candidate_json(doubt.witness),
        "conflict": conflict_json(doubt.conflict),
        "claim": doubt.claim.text,
        "witness_claim": doubt.witness_claim.text,
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
    """Returns the result of a search. Kept memories get room first, then doubts, then shadows."""
    fixed: JSON = {
        "query": result.query,
        "as_of": time_json(result.as_of),
        "view": result.view,
        "ranked": [candidate.chunk.id for candidate in result.ranked],
        "unjudged": list(result.unjudged),
        "timings_ms": timings_json(result.timings),
        "oracle": oracle,
    }
    room = Room(limits)
    room.spend(len(json_object(fixed)))
    found = {
        "kept": room.take(map(candidate_json, result.kept)),
        "doubtful": room.take(map(doubt_json, result.doubtful)),
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
    """Returns the answers of several paths, and as many of the chunks they read as fit.

    Doubts get what room the chunks leave, then shadows.
    """
    answers = tuple(answers)
    # The paths read different parts of one set, and perhaps less of a memory.
    candidates: dict[str, Candidate] = {}
    for answer in answers:
        for c in (*answer.resolution.kept, *(s.candidate for s in answer.resolution.shadows)):
            if c.struck or c.chunk.id not in candidates:
                candidates[c.chunk.id] = c
    ranked = sorted(candidates.values(), key=lambda c: (-c.relevance, -(c.chunk.seq or 0)))
    replies: list[JSON] = [
        {
            "path": answer.path,
            "text": answer.text,
            "choice": answer.choice,
            "view": answer.view,
            "kept": [candidate.chunk.id for candidate in answer.resolution.kept],
            "unjudged": list(answer.resolution.unjudged),
        }
        for answer in answers
    ]
    room = Room(limits)
    room.spend(sum(len(json_object(reply)) for reply in replies))
    shown = room.take(candidate_json(candidate) for candidate in ranked)
    doubts = [room.take(map(doubt_json, answer.resolution.doubtful)) for answer in answers]
    shadows = [room.take(map(shadow_json, answer.resolution.shadows)) for answer in answers]
    return json_object(
        {
            "answers": Items(
                json_object({**reply, "doubtful": doubted, "shadows": removed})
                for reply, doubted, removed in zip(replies, doubts, shadows, strict=True)
            ),
            "candidates": shown,
            "omitted": room.omitted,
            "timings_ms": timings_json(answers[0].timings),
        }
    )
