"""Haystack: a component that resolves documents, and a retriever (`gcmem[haystack]`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from gcmem.errors import InvalidFilterError, InvalidInputError, MissingExtraError
from gcmem.integrations.backfill import search_filled
from gcmem.integrations.conversion import SHADOWED_BY, metadata_of, resolve_sources, witness_fields
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
    """Removes the documents that a newer one contradicts.

    A document's time is looked up in its meta, under `time_key` or the common names. With
    `mode="annotate"` contradicted documents stay in `documents`. In both modes `shadows` holds
    copies of them that name the newer document under `shadowed_by` in their meta.
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
        """Returns the component as plain values. A custom oracle needs its own `to_dict`."""
        if self.oracle is not None and not hasattr(self.oracle, "to_dict"):
            raise SerializationError(
                f"the oracle {self.oracle.id!r} has no to_dict: add to_dict and from_dict to it, "
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
        """Returns the documents that are still true, in input order, and those that are not."""
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
        """The async version of `run`."""
        return await asyncio.to_thread(self.run, documents, query, options)


@component
class GCMemRetriever:
    """Retrieves at most `top_k` documents from a `Memory` that are still true.

    With a `path`, it opens the memory there when the pipeline warms up, and can be saved with the
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
        """Closes the memory if this component opened it."""
        if self.path is not None and self.memory is not None:
            self.memory.close()
            self.memory = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the component as plain values; it must have a `path`."""
        if self.path is None:
            raise SerializationError(
                "a Memory object can't be saved with a pipeline: create the retriever with "
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
        """Returns documents that answer the query; arguments override the component's settings."""
        self.warm_up()
        assert self.memory is not None
        found = search_filled(
            self.memory,
            query,
            k=self.top_k if top_k is None else top_k,
            user_id=user_id or self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
            filters=_as_gcmem_filters(filters or self.filters),
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
        """The async version of `run`."""
        return await asyncio.to_thread(self.run, query, top_k, user_id, filters, as_of, options)


def _as_gcmem_filters(filters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns Haystack's filters as the dict of metadata values that gcmem takes."""
    if filters is None or "operator" not in filters:
        return None if filters is None else dict(filters)
    operator = filters["operator"]
    if operator == "AND":
        parts = [_as_gcmem_filters(part) or {} for part in filters.get("conditions", [])]
        keys = [key for part in parts for key in part]
        if len(set(keys)) == len(keys):
            return {key: value for part in parts for key, value in part.items()}
    elif operator in ("==", "in") and "field" in filters:
        return {filters["field"].removeprefix("meta."): filters.get("value")}
    raise InvalidFilterError(
        f"filters={filters!r}: use ==, in, or an AND of them over different fields"
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
    reason = witness_fields(id=newer.id, text=newer.content or "")
    marked: Document = replace(document, meta={**document.meta, SHADOWED_BY: reason})
    return marked
