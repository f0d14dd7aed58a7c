"""The operator alone: κ and Φ_T over documents that somebody else retrieved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from gcmem.defaults import default_oracle
from gcmem.dominance import temporal_dominance
from gcmem.errors import InvalidInputError
from gcmem.ingest import parse_time
from gcmem.ingest.turns import TEXT_KEYS, TIME_KEYS, first, flatten
from gcmem.protocols import ConflictOracle
from gcmem.qualify import may_remove
from gcmem.types import Candidate, CandidateSet, Chunk, Conflict

Document = TypeVar("Document")

TEXT_ATTRIBUTES = ("page_content", *TEXT_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentShadow(Generic[Document]):
    """A document that a newer one contradicts, with the newer one and the verdict."""

    document: Document
    witness: Document
    conflict: Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentResolution(Generic[Document]):
    """The caller's own objects, split: kept in their order, shadows with their witnesses.

    Ids in conflicts are positions in the input, as strings.
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
    time_key: str | None = None,
    require_qualified: bool = True,
) -> DocumentResolution[Document]:
    """Removes from retrieved documents those that a newer one contradicts.

    A document is a chunk, a (text, time) pair, a dict, or an object with a text attribute and
    metadata. Its time is looked up under `time_key`, else under the usual names (at, timestamp,
    created_at, date, …); one without a time is never removed: such pairs come back as undecided.
    As in a `Memory`, an oracle that is unfit or was never qualified only annotates.
    """
    if isinstance(documents, (str, bytes)):
        raise InvalidInputError("documents is a list of documents, not one string")
    documents = list(documents)
    items = tuple(
        Candidate(chunk=_as_chunk(document, n, time_key), relevance=1.0, origin="mtm")
        for n, document in enumerate(documents)
    )
    candidates = CandidateSet(query=query, options=tuple(options), items=items)
    judge = oracle or default_oracle()
    resolution = temporal_dominance(candidates, judge.judge(candidates))
    if require_qualified and not may_remove(judge):
        resolution = replace(resolution, kept=items)
    return DocumentResolution(
        kept=tuple(documents[int(item.chunk.id)] for item in resolution.kept),
        shadows=tuple(
            DocumentShadow(
                document=documents[int(shadow.candidate.chunk.id)],
                witness=documents[int(shadow.witness.chunk.id)],
                conflict=shadow.conflict,
            )
            for shadow in resolution.shadows
        ),
        undecided=tuple(
            (documents[int(pair.older)], documents[int(pair.newer)])
            for pair in resolution.undecided
        ),
    )


def _as_chunk(document: Any, number: int, time_key: str | None) -> Chunk:
    if isinstance(document, Chunk):
        return Chunk(
            id=str(number), text=document.text, at=document.at, seq=document.seq,
            scope=document.scope, speaker=document.speaker,
        )  # fmt: skip
    text, when = _text_and_time(document, time_key)
    if not isinstance(text, (str, Mapping, Sequence)) or not flatten(text).strip():
        raise InvalidInputError(
            f"document {number} ({type(document).__name__}) has no text: expected a chunk, a "
            f"(text, time) pair, or one of {', '.join(TEXT_ATTRIBUTES)}"
        )
    try:
        at = None if when is None else parse_time(when)
    except InvalidInputError as error:
        raise InvalidInputError(f"document {number}: {error}") from None
    return Chunk(id=str(number), text=flatten(text), at=at)


def _text_and_time(document: Any, time_key: str | None) -> tuple[Any, Any]:
    if isinstance(document, str):
        return document, None
    if isinstance(document, tuple) and len(document) == 2:
        return document
    keys = (time_key,) if time_key else TIME_KEYS
    if isinstance(document, Mapping):
        fields = document
        text = first(document, TEXT_ATTRIBUTES)
    else:
        fields = {key: getattr(document, key, None) for key in keys}
        text = next(
            (v for name in TEXT_ATTRIBUTES if (v := getattr(document, name, None)) is not None),
            None,
        )
    metadata = (
        fields.get("metadata")
        if isinstance(document, Mapping)
        else getattr(document, "metadata", None)
    )
    when = first(fields, keys)
    if when is None and isinstance(metadata, Mapping):
        when = first(metadata, keys)
    return text, when
