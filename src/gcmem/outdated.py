"""Says of stored chunks what is known about them, without judging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gcmem.judged_chunks import JudgedChunks
from gcmem.types import Chunk, ChunkFilter, Doubt, Outcome, Shadow, Verdict

REJECTED = 0.0
"""The score of a person's verdict that one chunk did not end another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The newer chunk that ended an older one, or may have; and the verdict."""

    chunk: Chunk
    verdict: Verdict
    outcome: Outcome
    """What the older chunk is: outdated or doubtful."""
    ended: tuple[str, ...] = ()
    """The sentences of the older chunk that are outdated; empty if all of it is."""

    @property
    def id(self) -> str:
        """The id of the newer chunk."""
        return self.chunk.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known about chunks: by id who ended them, and which ones nobody has judged.

    `rejected` names by id the newer chunks of which a person says that they did not end this one.
    """

    witnesses: Mapping[str, Witness]
    unjudged: frozenset[str]
    pinned: frozenset[str] = frozenset()
    rejected: Mapping[str, Sequence[str]] = field(default_factory=dict)


def what_is_known(memory: JudgedChunks, chunks: Sequence[Chunk], *, where: ChunkFilter) -> Known:
    """Returns what ended each chunk or may have, what nobody has judged, and what people say."""
    ledger = memory.store.ledger
    if ledger is None:
        return Known(witnesses={}, unjudged=frozenset(chunk.id for chunk in chunks))
    found = memory.outcomes(chunks, where=where)
    mine = {chunk.id for chunk in chunks}
    witnesses: dict[str, Witness] = {}
    for doubt in found.doubtful:
        witnesses[doubt.candidate.chunk.id] = _witness(doubt, "doubtful")
    struck: dict[str, list[str]] = {}
    for shadow in found.shadows:
        chunk_id = shadow.candidate.chunk.id
        if shadow.claim is not None and not shadow.is_whole:
            struck.setdefault(chunk_id, []).append(shadow.claim.text)
        ended = tuple(struck.get(chunk_id, ()))
        witnesses[chunk_id] = _witness(shadow, "outdated", ended=ended)
    return Known(
        witnesses={chunk_id: w for chunk_id, w in witnesses.items() if chunk_id in mine},
        unjudged=frozenset(found.unjudged) - witnesses.keys(),
        pinned=frozenset(ledger.pins(list(mine))),
        rejected=_rejected(memory, ledger.verdicts(list(mine)), where=where),
    )


def _rejected(
    memory: JudgedChunks, verdicts: Sequence[Verdict], *, where: ChunkFilter
) -> dict[str, list[str]]:
    # The last word about two chunks counts, whoever said it and about which sentences.
    said = {(v.older, v.newer): v.score for v in verdicts if v.by == "person"}
    pairs = [pair for pair, score in said.items() if score == REJECTED]
    # Somebody with a wider scope may have named a chunk that is not to be seen here.
    newer = memory.store.log.get(sorted({newer for _, newer in pairs})) if pairs else {}
    rejected: dict[str, list[str]] = {}
    for older_id, newer_id in pairs:
        if newer_id in newer and where.admits(newer[newer_id]):
            rejected.setdefault(older_id, []).append(newer_id)
    return rejected


def _witness(found: Shadow | Doubt, outcome: Outcome, *, ended: tuple[str, ...] = ()) -> Witness:
    assert isinstance(found.conflict, Verdict)
    return Witness(chunk=found.witness.chunk, verdict=found.conflict, outcome=outcome, ended=ended)
