"""Converts between gcmem and the documents of frameworks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypedDict, TypeVar

from gcmem.protocols import ConflictOracle
from gcmem.resolve.documents import resolve
from gcmem.types import Candidate, Mode, SearchResult, Shadow

Source = TypeVar("Source")

SHADOWED_BY = "shadowed_by"
"""The metadata key of a contradicted document that names the newer one."""


class ScopeOptions(TypedDict, total=False):
    """The scope of a memory."""

    user_id: str | None
    agent_id: str | None
    run_id: str | None


class SearchOptions(ScopeOptions, total=False):
    """The arguments of `Memory.search` besides the question and k."""

    as_of: datetime | None
    known_at: datetime | None
    filters: Mapping[str, Any] | None
    mode: Mode
    options: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The text and metadata of a framework's document, and its position in the input."""

    text: str
    metadata: Mapping[str, Any]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved(Generic[Source]):
    """A framework's own documents: those kept, and (contradicted, newer) pairs."""

    kept: tuple[Source, ...]
    shadows: tuple[tuple[Source, Source], ...]

    def witness_of(self, source: Source) -> Source | None:
        """Returns the newer document that contradicts this very object, or None."""
        return next((newer for older, newer in self.shadows if older is source), None)


def resolve_sources(
    sources: Sequence[Source],
    *,
    read: Callable[[Source], tuple[str | None, Mapping[str, Any]]],
    query: str,
    oracle: ConflictOracle | None,
    options: Sequence[str],
    time_key: str | None,
    require_qualified: bool,
) -> Resolved[Source]:
    """Resolves a framework's documents; `read` returns the text and metadata of one.

    A document without text, such as an image, is not judged and is always kept.
    """
    read_sources = [(n, *read(source)) for n, source in enumerate(sources)]
    passages = [
        Passage(text=text, metadata=metadata, position=n)
        for n, text, metadata in read_sources
        if text and text.strip()
    ]
    resolution = resolve(
        passages,
        query=query,
        oracle=oracle,
        options=options,
        time_key=time_key,
        require_qualified=require_qualified,
    )
    removed = {p.position for p in passages} - {p.position for p in resolution.kept}
    return Resolved(
        kept=tuple(source for n, source in enumerate(sources) if n not in removed),
        shadows=tuple(
            (sources[shadow.document.position], sources[shadow.witness.position])
            for shadow in resolution.shadows
        ),
    )


def metadata_of(hit: Candidate, result: SearchResult) -> dict[str, Any]:
    """Returns the metadata of a found chunk for a framework's document, as plain JSON."""
    chunk = hit.chunk
    known = {
        "at": chunk.at and chunk.at.isoformat(),
        "recorded_at": chunk.recorded_at and chunk.recorded_at.isoformat(),
        "speaker": chunk.speaker,
        "session": chunk.session,
        "user_id": chunk.scope.user_id,
        "agent_id": chunk.scope.agent_id,
        "run_id": chunk.scope.run_id,
    }
    shadow = result.shadow_of(chunk.id)
    return {
        **chunk.metadata,
        **{key: value for key, value in known.items() if value is not None},
        **({} if shadow is None else {SHADOWED_BY: _witness_of(shadow)}),
    }


def _witness_of(shadow: Shadow) -> dict[str, str | None]:
    return witness_fields(id=shadow.witness.chunk.id, text=shadow.witness.chunk.text)


def witness_fields(*, id: str | None, text: str) -> dict[str, str | None]:
    """Returns the value for `shadowed_by`: the id and text of the newer document."""
    return {"id": id, "text": text}


def as_line(hit: Candidate) -> str:
    """Returns a found chunk as a line for a model to read, with its date."""
    day = f"[{hit.chunk.at:%Y-%m-%d}] " if hit.chunk.at else ""
    return f"- {day}{hit.chunk.text}"
