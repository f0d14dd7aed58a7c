"""Φ_T: a chunk goes exactly when a newer chunk of the set contradicts it.

    Φ_T(R) = { c_i ∈ R : no c_j ∈ R with κ(c_i, c_j) = 1 and τ_j > τ_i }

A dominated chunk still dominates, so a chain A → B → C collapses to C, and the result depends on
neither the order of the candidates nor that of the conflicts.

With `respect_trust`, c_j must also be trusted at least as much as c_i. That takes conflicts away
and adds none, so every law above still holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from gcmem.errors import InvalidInputError
from gcmem.resolve.skew import skew_between
from gcmem.types import Candidate, CandidateSet, Conflict, Resolution, Shadow, Skew


def temporal_dominance(
    candidates: CandidateSet,
    conflicts: Iterable[Conflict],
    *,
    max_skew: timedelta | None = None,
    respect_trust: bool = False,
) -> Resolution:
    """Splits the candidates into kept and shadowed; a pair that can't be ordered stays, flagged.

    Which end of a conflict is the older one is read off the chunks, not off the conflict. Chunks
    of two users never shadow each other: what is true of one says nothing about the other. With
    `max_skew`, a pair whose writers' clocks are proven to disagree by more is not ordered by them.
    With `respect_trust`, a chunk shadows none that is trusted more; such a pair is `outranked`.
    """
    by_id = {item.chunk.id: item for item in candidates}
    against: dict[str, list[tuple[Candidate, Conflict]]] = {}
    undecided: dict[tuple[str, str], Conflict] = {}
    skewed: dict[tuple[str, str], Skew] = {}
    outranked: dict[tuple[str, str], Conflict] = {}
    for conflict in conflicts:
        first, second = _ends(by_id, conflict)
        if first.chunk.scope.user_id != second.chunk.scope.user_id:
            continue
        first_is_older = first.chunk.precedes(second.chunk)
        skew = skew_between(first.chunk, second.chunk, max_skew=max_skew)
        if first_is_older is None or skew is not None:
            low, high = sorted((conflict.older, conflict.newer))
            undecided[low, high] = replace(conflict, older=low, newer=high)
            if skew is not None:
                skewed[low, high] = Skew(
                    conflict=undecided[low, high], disagreement_s=skew.total_seconds()
                )
            continue
        older, newer = (first, second) if first_is_older else (second, first)
        ordered = replace(conflict, older=older.chunk.id, newer=newer.chunk.id)
        if respect_trust and newer.chunk.trust < older.chunk.trust:
            outranked[ordered.older, ordered.newer] = ordered
            continue
        against.setdefault(older.chunk.id, []).append((newer, ordered))
    kept = tuple(item for item in candidates if item.chunk.id not in against)
    live = {item.chunk.id for item in kept}
    shadows = tuple(
        _shadow(item, against[item.chunk.id], live)
        for item in candidates
        if item.chunk.id in against
    )
    return Resolution(
        kept=kept,
        shadows=shadows,
        undecided=tuple(undecided[pair] for pair in sorted(undecided)),
        skewed=tuple(skewed[pair] for pair in sorted(skewed)),
        outranked=tuple(outranked[pair] for pair in sorted(outranked)),
    )


def _ends(by_id: dict[str, Candidate], conflict: Conflict) -> tuple[Candidate, Candidate]:
    if conflict.older == conflict.newer:
        raise InvalidInputError(f"oracle {conflict.oracle!r} judged a chunk against itself")
    try:
        return by_id[conflict.older], by_id[conflict.newer]
    except KeyError as missing:
        raise InvalidInputError(
            f"oracle {conflict.oracle!r} judged chunk {missing}, which is not in the candidate set"
        ) from None


def _shadow(
    candidate: Candidate, witnesses: list[tuple[Candidate, Conflict]], live: set[str]
) -> Shadow:
    """Names the most convincing witness: one that is live itself, then the surest, the newest."""
    best = witnesses[0]
    for other in witnesses[1:]:
        if _strength(other, live) > _strength(best, live) or (
            _strength(other, live) == _strength(best, live)
            and best[0].chunk.precedes(other[0].chunk)
        ):
            best = other
    return Shadow(candidate=candidate, witness=best[0], conflict=best[1])


def _strength(witness: tuple[Candidate, Conflict], live: set[str]) -> tuple[bool, float]:
    return witness[0].chunk.id in live, witness[1].score
