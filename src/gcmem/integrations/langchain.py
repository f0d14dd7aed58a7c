"""LangChain: a retriever, a filter for any retriever, embeddings and tools (`gcmem[langchain]`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from gcmem.defaults import default_encoder
from gcmem.errors import InvalidInputError, MissingExtraError
from gcmem.integrations.backfill import search_filled
from gcmem.integrations.conversion import SHADOWED_BY, as_line, metadata_of, witness_fields
from gcmem.memory import Memory
from gcmem.protocols import ConflictOracle, Encoder
from gcmem.resolve.document_fields import Key
from gcmem.resolve.documents import resolve
from gcmem.times import parse_time
from gcmem.types import Candidate, Mode, SearchResult

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.documents import (
        BaseDocumentCompressor,
        BaseDocumentTransformer,
        Document,
    )
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import run_in_executor
    from langchain_core.tools import BaseTool, ToolException
    from pydantic import BaseModel, ConfigDict, Field
except ModuleNotFoundError:
    raise MissingExtraError("langchain", package="langchain-core") from None


class GCMemRetriever(BaseRetriever):
    """Retrieves documents from a `Memory` that are still true.

    If fewer than k documents are left, it searches once more with a larger k. Every field except
    the memory can also be passed to a call: `retriever.invoke(question, k=3, user_id="ana")`.
    """

    memory: Memory
    k: int = 10
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    filters: Mapping[str, Any] | None = None
    mode: Mode = "drop"
    options: Sequence[str] = ()

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        **search: Any,
    ) -> list[Document]:
        fields = set(type(self).model_fields) - set(BaseRetriever.model_fields) - {"memory"}
        given = {name: getattr(self, name) for name in fields} | search
        result = search_filled(self.memory, query, **given)
        return [_as_document(hit, result) for hit in result]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun | None = None,
        **search: Any,
    ) -> list[Document]:
        documents: list[Document] = await run_in_executor(
            None, self._get_relevant_documents, query, **search
        )
        return documents


class TemporalDominance(BaseDocumentCompressor, BaseDocumentTransformer):
    """Removes the documents that a newer one contradicts.

    A document compressor and transformer; `around(retriever)` wraps a retriever with it. With
    `mode="annotate"` nothing is removed: contradicted documents are replaced by copies that name
    the newer one under `shadowed_by` in their metadata.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    oracle: Any = None
    time_key: Key | None = None
    tz: tzinfo = UTC
    options: Sequence[str] = ()
    mode: Literal["drop", "annotate"] = "drop"
    require_qualified: bool = True

    def __init__(self, *, oracle: ConflictOracle | None = None, **fields: Any) -> None:
        super().__init__(oracle=oracle, **fields)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Returns the documents that are still true, in input order."""
        resolution = resolve(
            documents,
            query=query,
            oracle=self.oracle,
            options=self.options,
            time_key=self.time_key,
            tz=self.tz,
            require_qualified=self.require_qualified,
        )
        if self.mode == "drop":
            return list(resolution.kept)
        witnesses = {id(shadow.document): shadow.witness for shadow in resolution.shadows}
        return [_annotated(document, witnesses.get(id(document))) for document in documents]

    def transform_documents(
        self, documents: Sequence[Document], *, query: str = "", **kwargs: Any
    ) -> Sequence[Document]:
        """Returns the documents that are still true; the query is optional."""
        return self.compress_documents(documents, query)

    def around(self, retriever: BaseRetriever) -> BaseRetriever:
        """Returns a retriever that removes contradicted documents from the results of another."""
        return _Resolved(retriever=retriever, dominance=self)


class _Resolved(BaseRetriever):
    """Resolves the documents of another retriever."""

    retriever: BaseRetriever
    dominance: TemporalDominance

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        config = {"callbacks": run_manager.get_child()}
        documents = self.retriever.invoke(query, config, **kwargs)
        return list(self.dominance.compress_documents(documents, query))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        config = {"callbacks": run_manager.get_child()}
        documents = await self.retriever.ainvoke(query, config, **kwargs)
        return list(await self.dominance.acompress_documents(documents, query))


class GCMemEmbeddings(Embeddings):
    """The shipped sentence encoder, or any gcmem encoder, as LangChain embeddings."""

    def __init__(self, encoder: Encoder | None = None) -> None:
        self.encoder = encoder or default_encoder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Returns one unit vector per text."""
        vectors: list[list[float]] = self.encoder.encode(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Returns the unit vector of a question."""
        return self.embed_documents([text])[0]


class _AddInput(BaseModel):
    text: str = Field(description="One fact in one plain sentence that names whom it is about.")
    at: str | None = Field(
        default=None,
        description="When it became true, as ISO 8601 with offset; left out, it is now.",
    )


class _SearchInput(BaseModel):
    query: str = Field(description="The question, in plain words.")
    as_of: str | None = Field(
        default=None,
        description="Ask what was true at this time, as ISO 8601 with offset; left out, it is now.",
    )


class _MemoryTool(BaseTool):
    """The fields that both tools share. The model can't choose the scope."""

    memory: Memory
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    handle_tool_error: Any = True

    def _scope(self) -> dict[str, Any]:
        return {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id}


class AddMemory(_MemoryTool):
    """A tool for a model to add a fact; facts that it contradicts need not be deleted."""

    name: str = "add_memory"
    description: str = (
        "Remember a fact for later conversations. When a fact has changed, just add the new one: "
        "the old one stops being returned by itself."
    )
    args_schema: Any = _AddInput

    def _run(self, text: str, at: str | None = None, **_: Any) -> str:
        try:
            self.memory.add(text, at=None if at is None else parse_time(at), **self._scope())
        except InvalidInputError as error:
            raise ToolException(str(error)) from error
        return "Remembered."


class SearchMemory(_MemoryTool):
    """A tool for a model to search for facts that are still true; returns a `SearchResult` too."""

    name: str = "search_memory"
    description: str = (
        "Recall what is known that bears on a question. Only facts that are still true come back."
    )
    args_schema: Any = _SearchInput
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    k: int = 10

    def _run(self, query: str, as_of: str | None = None, **_: Any) -> tuple[str, SearchResult]:
        try:
            moment = None if as_of is None else parse_time(as_of)
            found = search_filled(self.memory, query, k=self.k, as_of=moment, **self._scope())
        except InvalidInputError as error:
            raise ToolException(str(error)) from error
        return as_lines(found) or "Nothing is known about this.", found


def memory_tools(
    memory: Memory,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    k: int = 10,
) -> list[BaseTool]:
    """Returns the tools for an agent to add to a memory and search it, in one scope."""
    scope = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    return [AddMemory(memory=memory, **scope), SearchMemory(memory=memory, k=k, **scope)]


def as_lines(found: SearchResult) -> str:
    """Returns the found chunks for a model to read, one dated line per chunk."""
    return "\n".join(map(as_line, found))


def _as_document(hit: Candidate, result: SearchResult) -> Document:
    metadata = {**metadata_of(hit, result), "relevance": hit.relevance}
    return Document(id=hit.chunk.id, page_content=hit.chunk.text, metadata=metadata)


def _annotated(document: Document, witness: Document | None) -> Document:
    if witness is None:
        return document
    newer = witness_fields(id=witness.id, text=witness.page_content)
    copy: Document = document.model_copy(
        update={"metadata": {**document.metadata, SHADOWED_BY: newer}}
    )
    return copy
