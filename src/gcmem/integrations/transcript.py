"""Which turns of a conversation are no longer true; no framework is imported here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gcmem.judge.pairs import ASSISTANT
from gcmem.protocols import CandidateResolver
from gcmem.sentences import states_something
from gcmem.types import Candidate, CandidateSet, Chunk, Shadow

LONGEST = 1000
"""A turn of more characters than this says more than one thing, so it stays."""


def superseded(chunks: Sequence[Chunk], *, resolver: CandidateResolver) -> dict[str, Shadow]:
    """Returns the chunks that a newer one contradicts, by id, each with its witness.

    Long turns are neither removed nor witnesses. Only what people said is a witness: a mistake of
    the model unseats nobody. No question is asked, since the same history serves many.
    """
    telling = [c for c in chunks if len(c.text) <= LONGEST and states_something(c.text)]
    heard = [chunk for chunk in telling if chunk.speaker != ASSISTANT]
    shadows = _shadows(heard, resolver)
    if len(heard) == len(telling):
        return shadows
    # Under a name each, the model's turns are held against what was heard, not against each other.
    named = [
        replace(chunk, speaker=f"{ASSISTANT} {n}" if chunk.speaker == ASSISTANT else "user")
        for n, chunk in enumerate(telling)
    ]
    said = {chunk.id: chunk for chunk in telling if chunk.speaker == ASSISTANT}
    for chunk_id, shadow in _shadows(named, resolver).items():
        if chunk_id in said and shadow.witness.chunk.id not in said:
            candidate = replace(shadow.candidate, chunk=said[chunk_id])
            shadows[chunk_id] = replace(shadow, candidate=candidate)
    return shadows


def note(shadow: Shadow) -> str:
    """Returns the words that mark a turn which stays although it is no longer true."""
    witness = shadow.witness.chunk
    when = "" if witness.at is None else f" since {witness.at:%Y-%m-%d}"
    return f"[no longer true{when}: {witness.text}]"


def _shadows(chunks: Sequence[Chunk], resolver: CandidateResolver) -> dict[str, Shadow]:
    items = tuple(Candidate(chunk=chunk, relevance=1.0, origin="stm") for chunk in chunks)
    candidates = CandidateSet(query="", items=items)
    shadows = resolver.resolve(candidates).shadows
    return {shadow.candidate.chunk.id: shadow for shadow in shadows}
