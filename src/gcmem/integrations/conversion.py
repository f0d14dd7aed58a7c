"""Between gcmem and the documents of a framework: what both directions have in common."""

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
"""The metadata key under which a contradicted document names the newer one."""


class ScopeOptions(TypedDict, total=False):
    """Whose memory it is."""

    user_id: str | None
    agent_id: str | None
    run_id: str | None


class SearchOptions(ScopeOptions, total=False):
    """What `Memory.search` takes beside the question and k."""

    as_of: datetime | None
    known_at: datetime | None
    filters: Mapping[str, Any] | None
    mode: Mode
    options: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What `resolve` reads of a framework's document, and where the document stood."""

    text: str
    metadata: Mapping[str, Any]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved(Generic[Source]):
    """A framework's own documents: those that hold, and (contradicted, newer) pairs."""

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
    """Resolves documents of which `read` returns the text and the metadata.

    One without text, such as a picture, can't be contradicted: it is not judged and stays.
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
    """Returns what a framework's document should say of a found chunk, as plain JSON."""
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
        **({} if shadow is None else {SHADOWED_BY: _proof(shadow)}),
    }


def _proof(shadow: Shadow) -> dict[str, str | None]:
    return proof(id=shadow.witness.chunk.id, text=shadow.witness.chunk.text)


def proof(*, id: str | None, text: str) -> dict[str, str | None]:
    """Returns what stands under `shadowed_by`: which newer document it was."""
    return {"id": id, "text": text}


def as_line(hit: Candidate) -> str:
    """Returns a found chunk for a model to read, with its day."""
    day = f"[{hit.chunk.at:%Y-%m-%d}] " if hit.chunk.at else ""
    return f"- {day}{hit.chunk.text}"
