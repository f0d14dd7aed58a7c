"""Applies κ and Φ_T to documents from any retriever, without a store."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Generic, TypeVar

from gcmem.defaults import make_resolver
from gcmem.errors import InvalidInputError
from gcmem.filters import check_options
from gcmem.protocols import ConflictOracle
from gcmem.resolve.document_fields import Key, as_chunk
from gcmem.types import Candidate, CandidateSet, Chunk, Conflict, Fitness

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentShadow(Generic[Document]):
    """A document that a newer one contradicts, with the newer document and the verdict."""

    document: Document
    witness: Document
    conflict: Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentResolution(Generic[Document]):
    """The caller's own objects: those kept, in input order, and the shadows with their witnesses.

    The ids in conflicts are positions in the input, as strings.
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
    qualification: Mapping[str, Fitness] | None = None,
    require_qualified: bool = True,
) -> DocumentResolution[Document]:
    """Removes the documents that a newer one contradicts.

    A document is any object, dict or tuple with a text: a framework's document or node, a scored
    hit, a chunk, a (text, time) pair. `text_key` and `time_key` are names or functions of the
    document; by default common names are looked up (docs/integrations.md). `tz` is assumed for
    times without a timezone. A document without a time is never removed: its conflicts are
    `undecided`. As in a `Memory`, an oracle that is unfit or was never measured only annotates.
    """
    if isinstance(documents, (str, bytes, Mapping)) or not isinstance(documents, Iterable):
        raise InvalidInputError(
            f"documents must be a list of documents, not a single {type(documents).__name__}"
        )
    check_options(options)
    if not isinstance(query, str):
        raise InvalidInputError(f"query={query!r}: pass a string")
    if not isinstance(tz, tzinfo):
        raise InvalidInputError(f"tz={tz!r}: pass a timezone, for example zoneinfo.ZoneInfo(...)")
    for name, key in (("text_key", text_key), ("time_key", time_key)):
        if key is not None and not isinstance(key, str) and not callable(key):
            raise InvalidInputError(f"{name}={key!r}: pass a name, or a function of a document")
    if oracle is not None and not callable(getattr(oracle, "judge", None)):
        raise InvalidInputError(f"oracle={oracle!r}: pass a ConflictOracle")
    documents = list(documents)
    chunks = [
        as_chunk(document, number=number, text_key=text_key, time_key=time_key, tz=tz)
        for number, document in enumerate(documents)
    ]
    ids = _ids_by_content(chunks)
    place = {chunk_id: number for number, chunk_id in enumerate(ids)}
    items = tuple(
        Candidate(chunk=replace(chunk, id=chunk_id), relevance=1.0, origin="mtm")
        for chunk, chunk_id in zip(chunks, ids, strict=True)
    )
    candidates = CandidateSet(query=query, options=tuple(options), items=items)
    resolver = make_resolver(
        oracle, qualification=qualification, require_qualified=require_qualified
    )
    resolution = resolver.resolve(candidates)
    undecided = sorted(
        tuple(sorted((place[pair.older], place[pair.newer]))) for pair in resolution.undecided
    )
    return DocumentResolution(
        kept=tuple(documents[place[item.chunk.id]] for item in resolution.kept),
        shadows=tuple(
            DocumentShadow(
                document=documents[place[shadow.candidate.chunk.id]],
                witness=documents[place[shadow.witness.chunk.id]],
                conflict=replace(
                    shadow.conflict,
                    older=str(place[shadow.conflict.older]),
                    newer=str(place[shadow.conflict.newer]),
                ),
            )
            for shadow in resolution.shadows
        ),
        undecided=tuple((documents[first], documents[second]) for first, second in undecided),
    )


def _ids_by_content(chunks: Sequence[Chunk]) -> list[str]:
    """Returns one content hash per chunk; repeats get distinct ids.

    Oracles cache verdicts by id, and a position would mean another document in the next call.
    """
    seen: Counter[str] = Counter()
    ids = []
    for chunk in chunks:
        content = json.dumps(
            [chunk.text, chunk.at and chunk.at.isoformat(), chunk.scope.user_id, chunk.speaker]
        )
        digest = hashlib.sha256(content.encode()).hexdigest()
        ids.append(f"document:{digest}:{seen[digest]}")
        seen[digest] += 1
    return ids
