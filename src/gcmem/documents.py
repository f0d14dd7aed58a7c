"""The operator alone: κ and Φ_T over documents that somebody else retrieved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Generic, TypeVar

from gcmem.defaults import default_oracle
from gcmem.dominance import temporal_dominance
from gcmem.errors import InvalidInputError
from gcmem.fields import Key, as_chunk
from gcmem.protocols import ConflictOracle
from gcmem.qualify import may_remove
from gcmem.types import Candidate, CandidateSet, Chunk, Conflict

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentShadow(Generic[Document]):
    """A document that a newer one contradicts, with the newer one and the verdict."""

    document: Document
    witness: Document
    conflict: Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentResolution(Generic[Document]):
    """The caller's own objects, split: kept in their order, shadows with their witnesses.

    Ids in conflicts are positions in the input, each with a digest of its text: an oracle that
    remembers verdicts by id must not take one document for another.
    """

    kept: tuple[Document, ...]
    shadows: tuple[DocumentShadow[Document], ...]
    undecided: tuple[tuple[Document, Document], ...]


def resolve(
    documents: Iterable[Document],
    *,
    query: str,
    oracle: ConflictOracle | None = None,
    options: Sequence[str] = (),
    text_key: Key | None = None,
    time_key: Key | None = None,
    tz: tzinfo = UTC,
    require_qualified: bool = True,
) -> DocumentResolution[Document]:
    """Removes from retrieved documents those that a newer one contradicts.

    A document is any object, dict or tuple with a text: a framework's document or node, a scored
    hit, a chunk, a (text, time) pair. `text_key` and `time_key` are names or functions of the
    document; without them the common names are looked up (docs/integrations.md). `tz` is assumed
    for times without a timezone. A document without a time is never removed: pairs are undecided.
    As in a `Memory`, an oracle that is unfit or was never qualified only annotates.
    """
    if isinstance(documents, (str, bytes)):
        raise InvalidInputError("documents is a list of documents, not one string")
    documents = list(documents)
    items = tuple(
        Candidate(
            chunk=_named(as_chunk(document, number=n, text_key=text_key, time_key=time_key, tz=tz)),
            relevance=1.0,
            origin="mtm",
        )
        for n, document in enumerate(documents)
    )
    candidates = CandidateSet(query=query, options=tuple(options), items=items)
    judge = oracle or default_oracle()
    resolution = temporal_dominance(candidates, judge.judge(candidates))
    if require_qualified and not may_remove(judge):
        resolution = replace(resolution, kept=items)
    return DocumentResolution(
        kept=tuple(documents[_position(item.chunk.id)] for item in resolution.kept),
        shadows=tuple(
            DocumentShadow(
                document=documents[_position(shadow.candidate.chunk.id)],
                witness=documents[_position(shadow.witness.chunk.id)],
                conflict=shadow.conflict,
            )
            for shadow in resolution.shadows
        ),
        undecided=tuple(
            (documents[_position(pair.older)], documents[_position(pair.newer)])
            for pair in resolution.undecided
        ),
    )


def _named(chunk: Chunk) -> Chunk:
    """Returns the chunk with an id that no other text has had at this position."""
    digest = hashlib.blake2b(chunk.text.encode(), digest_size=8).hexdigest()
    return replace(chunk, id=f"{chunk.id}-{digest}")


def _position(chunk_id: str) -> int:
    return int(chunk_id.partition("-")[0])
