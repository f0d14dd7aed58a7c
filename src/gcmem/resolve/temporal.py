"""Φ_T: removes exactly the chunks that a newer chunk of the set contradicts.

    Φ_T(R) = { c_i ∈ R : no c_j ∈ R with κ(c_i, c_j) = 1 and τ_j > τ_i }

A removed chunk can still remove others, so a chain A → B → C collapses to C. The result depends on
neither the order of the candidates nor that of the conflicts.

With `respect_trust`, c_j must also be trusted at least as much as c_i. That only ignores some
conflicts, so both statements still hold.
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
    """Splits the candidates into kept and shadowed; a pair without an order in time is `undecided`.

    The chunks' own times decide which is older, not the conflict. Chunks of different users never
    shadow each other. With `max_skew`, a pair whose clocks provably differ by more is undecided.
    With `respect_trust`, a chunk can't shadow a more trusted one; such a pair is `outranked`.
    """
    by_id = {item.chunk.id: item for item in candidates}
    against: dict[str, list[tuple[Candidate, Conflict]]] = {}
    undecided: dict[tuple[str, str], Conflict] = {}
    skewed: dict[tuple[str, str], Skew] = {}
    outranked: dict[tuple[str, str], Conflict] = {}
    for conflict in conflicts:
        first, second = _candidates_of(by_id, conflict)
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


def _candidates_of(by_id: dict[str, Candidate], conflict: Conflict) -> tuple[Candidate, Candidate]:
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
    """Picks the best witness: preferably one that is kept, then the highest score, the newest."""
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
