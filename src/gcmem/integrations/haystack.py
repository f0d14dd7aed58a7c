"""Haystack: a component that resolves documents, and a retriever (`gcmem[haystack]`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from gcmem.errors import InvalidFilterError, InvalidInputError, MissingExtraError
from gcmem.integrations.backfill import search_filled
from gcmem.integrations.conversion import SHADOWED_BY, metadata_of, proof, resolve_sources
from gcmem.memory import Memory
from gcmem.protocols import ConflictOracle
from gcmem.types import Mode, SearchResult

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.errors import SerializationError
except ModuleNotFoundError:
    raise MissingExtraError("haystack", package="haystack-ai") from None


@component
class TemporalDominance:
    """Takes out of retrieved documents those that a newer one contradicts.

    A document's time is looked up in its meta, under `time_key` or the usual names. With
    `mode="annotate"` the contradicted ones stay among `documents`. Either way they come out of
    `shadows`, as copies that name the newer document under `shadowed_by` in their meta.
    """

    def __init__(
        self,
        *,
        oracle: ConflictOracle | None = None,
        time_key: str | None = None,
        options: list[str] | None = None,
        mode: Literal["drop", "annotate"] = "drop",
        require_qualified: bool = True,
    ) -> None:
        self.oracle = oracle
        self.time_key = time_key
        self.options = options
        self.mode = mode
        self.require_qualified = require_qualified

    def to_dict(self) -> dict[str, Any]:
        """Returns the component as plain values; an oracle must have a `to_dict` of its own."""
        if self.oracle is not None and not hasattr(self.oracle, "to_dict"):
            raise SerializationError(
                f"the oracle {self.oracle.id!r} has no to_dict: give it to_dict and from_dict, "
                "or leave it out to use the shipped one"
            )
        saved: dict[str, Any] = default_to_dict(
            self,
            oracle=self.oracle,
            time_key=self.time_key,
            options=self.options,
            mode=self.mode,
            require_qualified=self.require_qualified,
        )
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TemporalDominance:
        """Makes the component that `to_dict` described."""
        made: TemporalDominance = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document], shadows=list[Document])
    def run(
        self, documents: list[Document], query: str = "", options: list[str] | None = None
    ) -> dict[str, list[Document]]:
        """Returns the documents that still hold, in their order, and those that don't."""
        resolved = resolve_sources(
            documents,
            read=lambda document: (document.content, document.meta),
            query=query,
            oracle=self.oracle,
            options=options or self.options or (),
            time_key=self.time_key,
            require_qualified=self.require_qualified,
        )
        marked = {id(older): _annotated(older, newer) for older, newer in resolved.shadows}
        shown = documents if self.mode == "annotate" else resolved.kept
        return {
            "documents": [marked.get(id(document), document) for document in shown],
            "shadows": list(marked.values()),
        }

    @component.output_types(documents=list[Document], shadows=list[Document])
    async def run_async(
        self, documents: list[Document], query: str = "", options: list[str] | None = None
    ) -> dict[str, list[Document]]:
        """The async twin of `run`."""
        return await asyncio.to_thread(self.run, documents, query, options)


@component
class GCMemRetriever:
    """Retrieves from a `Memory` what is still true, at most `top_k` documents.

    Given a `path`, it opens the memory there when the pipeline warms up, and can be saved with the
    pipeline. `filters` are Haystack's with `==`, `in` and `AND`, or a plain dict of values.
    """

    def __init__(
        self,
        *,
        memory: Memory | None = None,
        path: str | None = None,
        top_k: int = 10,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: dict[str, Any] | None = None,
        mode: Mode = "drop",
    ) -> None:
        if (memory is None) == (path is None):
            raise InvalidInputError("pass either memory or path")
        self.memory = memory
        self.path = path
        self.top_k = top_k
        self.user_id = user_id
        self.agent_id = agent_id
        self.run_id = run_id
        self.filters = filters
        self.mode = mode

    def warm_up(self) -> None:
        """Opens the memory at `path`, once."""
        if self.memory is None:
            self.memory = Memory(self.path)

    def close(self) -> None:
        """Closes the memory that it opened; one that it was given stays open."""
        if self.path is not None and self.memory is not None:
            self.memory.close()
            self.memory = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the component as plain values; that takes a `path`."""
        if self.path is None:
            raise SerializationError(
                "a Memory object can't be saved with a pipeline: make the retriever with "
                "path=..., which opens the memory there with the shipped models"
            )
        saved: dict[str, Any] = default_to_dict(
            self,
            path=self.path,
            top_k=self.top_k,
            user_id=self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
            filters=self.filters,
            mode=self.mode,
        )
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GCMemRetriever:
        """Makes the component that `to_dict` described."""
        made: GCMemRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        top_k: int | None = None,
        user_id: str | None = None,
        filters: dict[str, Any] | None = None,
        as_of: datetime | None = None,
        options: list[str] | None = None,
    ) -> dict[str, list[Document]]:
        """Returns the documents that answer the query and still hold; what is given goes first."""
        self.warm_up()
        assert self.memory is not None
        found = search_filled(
            self.memory,
            query,
            k=self.top_k if top_k is None else top_k,
            user_id=user_id or self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
            filters=_plain(filters or self.filters),
            as_of=as_of,
            mode=self.mode,
            options=options or (),
        )
        return {"documents": _as_documents(found)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        top_k: int | None = None,
        user_id: str | None = None,
        filters: dict[str, Any] | None = None,
        as_of: datetime | None = None,
        options: list[str] | None = None,
    ) -> dict[str, list[Document]]:
        """The async twin of `run`."""
        return await asyncio.to_thread(self.run, query, top_k, user_id, filters, as_of, options)


def _plain(filters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns Haystack's filters as the dict of metadata values that gcmem takes."""
    if filters is None or "operator" not in filters:
        return None if filters is None else dict(filters)
    operator = filters["operator"]
    if operator == "AND":
        parts = [_plain(part) or {} for part in filters.get("conditions", [])]
        keys = [key for part in parts for key in part]
        if len(set(keys)) == len(keys):
            return {key: value for part in parts for key, value in part.items()}
    elif operator in ("==", "in") and "field" in filters:
        return {filters["field"].removeprefix("meta."): filters.get("value")}
    raise InvalidFilterError(
        f"filters={filters!r}: a memory answers ==, in, and an AND of them over different fields"
    )


def _as_documents(found: SearchResult) -> list[Document]:
    return [
        Document(
            id=hit.chunk.id,
            content=hit.chunk.text,
            meta=metadata_of(hit, found),
            score=hit.relevance,
        )
        for hit in found
    ]


def _annotated(document: Document, newer: Document) -> Document:
    reason = proof(id=newer.id, text=newer.content or "")
    marked: Document = replace(document, meta={**document.meta, SHADOWED_BY: reason})
    return marked
