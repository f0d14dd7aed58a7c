"""Finds the turns of a conversation that are no longer true. Imports no framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gcmem.judge.pairs import ASSISTANT
from gcmem.protocols import CandidateResolver
from gcmem.sentences import states_something
from gcmem.types import Candidate, CandidateSet, Chunk, Shadow

MAX_TURN_CHARS = 1000
"""A longer turn says more than one thing, so it is not judged."""


def superseded(chunks: Sequence[Chunk], *, resolver: CandidateResolver) -> dict[str, Shadow]:
    """Returns the shadows of the chunks that a newer one contradicts, by chunk id.

    Long turns are neither removed nor witnesses. Only people's turns can be witnesses, since the
    model makes mistakes. The chunks are judged without a question, so that any question can follow.
    """
    statements = [c for c in chunks if len(c.text) <= MAX_TURN_CHARS and states_something(c.text)]
    by_people = [chunk for chunk in statements if chunk.speaker != ASSISTANT]
    shadows = _shadows(by_people, resolver)
    if len(by_people) == len(statements):
        return shadows
    # Each of the model's turns gets its own name: only people's turns can then contradict it.
    named = [
        replace(chunk, speaker=f"{ASSISTANT} {n}" if chunk.speaker == ASSISTANT else "user")
        for n, chunk in enumerate(statements)
    ]
    by_model = {chunk.id: chunk for chunk in statements if chunk.speaker == ASSISTANT}
    for chunk_id, shadow in _shadows(named, resolver).items():
        if chunk_id in by_model and shadow.witness.chunk.id not in by_model:
            candidate = replace(shadow.candidate, chunk=by_model[chunk_id])
            shadows[chunk_id] = replace(shadow, candidate=candidate)
    return shadows


def note(shadow: Shadow) -> str:
    """Returns the note for a turn that is no longer true but stays in the history."""
    witness = shadow.witness.chunk
    when = "" if witness.at is None else f" since {witness.at:%Y-%m-%d}"
    return f"[no longer true{when}: {witness.text}]"


def _shadows(chunks: Sequence[Chunk], resolver: CandidateResolver) -> dict[str, Shadow]:
    items = tuple(Candidate(chunk=chunk, relevance=1.0, origin="stm") for chunk in chunks)
    candidates = CandidateSet(query="", items=items)
    shadows = resolver.resolve(candidates).shadows
    return {shadow.candidate.chunk.id: shadow for shadow in shadows}
