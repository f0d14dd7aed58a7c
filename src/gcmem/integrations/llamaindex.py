"""LlamaIndex: a node postprocessor, a retriever and a memory block (`gcmem[llamaindex]`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal, Unpack

from gcmem.errors import MissingExtraError
from gcmem.integrations.backfill import search_filled
from gcmem.integrations.conversion import (
    SHADOWED_BY,
    ScopeOptions,
    SearchOptions,
    as_line,
    metadata_of,
    resolve_sources,
    witness_fields,
)
from gcmem.memory import Memory
from gcmem.message_fields import TIME_KEYS, first
from gcmem.protocols import ConflictOracle
from gcmem.times import parse_time
from gcmem.types import Candidate, CandidateSet, Chunk, Scope, SearchResult, Turn

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.memory.memory import BaseMemoryBlock
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError:
    raise MissingExtraError("llamaindex", package="llama-index-core") from None

BOOKKEEPING = ["recorded_at", "session", "user_id", "agent_id", "run_id"]
"""Metadata of a node that is left out of prompts and embeddings."""


class TemporalDominance(BaseNodePostprocessor):
    """Removes the nodes that a newer one contradicts.

    A node's time is looked up in its metadata, under `time_key` or the common names. With
    `mode="annotate"` nothing is removed: contradicted nodes are replaced by copies that name the
    newer one under `shadowed_by` in their metadata.
    """

    oracle: Any = Field(default=None, exclude=True)
    time_key: str | None = None
    options: tuple[str, ...] = ()
    mode: Literal["drop", "annotate"] = "drop"
    require_qualified: bool = True

    def __init__(self, *, oracle: ConflictOracle | None = None, **fields: Any) -> None:
        super().__init__(oracle=oracle, **fields)

    @classmethod
    def class_name(cls) -> str:
        """Returns the name that LlamaIndex serialises it under."""
        return "TemporalDominance"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        resolved = resolve_sources(
            nodes,
            read=lambda hit: (hit.node.get_content(MetadataMode.NONE), hit.node.metadata),
            query=query_bundle.query_str if query_bundle else "",
            oracle=self.oracle,
            options=self.options,
            time_key=self.time_key,
            require_qualified=self.require_qualified,
        )
        if self.mode == "drop":
            return list(resolved.kept)
        return [_annotated(hit, resolved.witness_of(hit)) for hit in nodes]


class GCMemRetriever(BaseRetriever):
    """Retrieves at most k nodes from a `Memory` that are still true."""

    def __init__(
        self,
        memory: Memory,
        *,
        k: int = 10,
        callback_manager: CallbackManager | None = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._memory = memory
        self._k = k
        self._search = search

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        return _as_nodes(search_filled(self._memory, query, k=self._k, **self._search))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class GCMemBlock(BaseMemoryBlock[str]):
    """Long-term memory for a LlamaIndex `Memory`: stores old messages, returns what is still true.

    The latest user message is the question. The `recent` messages before it, which are not stored
    yet, can also contradict what is stored. The time of a message comes from its
    `additional_kwargs` ("at", "timestamp", …); otherwise it is the time of storing. Only messages
    of `roles` are stored: an assistant often repeats what it read from memory.
    """

    name: str = "known_facts"
    memory: Memory
    k: int = 10
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    filters: Mapping[str, Any] | None = None
    roles: tuple[str, ...] = ("user",)
    recent: int = 10

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        return await asyncio.to_thread(self._recall, self._spoken(messages or []))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        turns = [_as_turn(message) for message in self._spoken(messages)]
        if turns:
            await self.memory.aadd(turns, **self._scope())

    def _spoken(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        return [m for m in messages if m.role.value in self.roles and (m.content or "").strip()]

    def _scope(self) -> ScopeOptions:
        return {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id}

    def _recall(self, spoken: Sequence[ChatMessage]) -> str:
        asked = [message for message in spoken if message.role.value == "user"]
        if not asked:
            return ""
        question = asked[-1]
        found = search_filled(
            self.memory, question.content, k=self.k, filters=self.filters, **self._scope()
        )
        before = [message for message in spoken if message is not question]
        live = self._still_true(found, before[-self.recent :] if self.recent else [])
        return "\n".join(as_line(hit) for hit in found if hit.chunk.id in live)

    def _still_true(self, found: SearchResult, chat: Sequence[ChatMessage]) -> set[str]:
        """Returns the ids of the found chunks that no message of the current chat contradicts."""
        if not chat:
            return {hit.chunk.id for hit in found}
        scope = Scope(**self._scope())
        now = datetime.now(UTC)
        said = {turn: _as_candidate(turn, scope=scope, now=now) for turn in map(_as_turn, chat)}
        candidates = CandidateSet(query=found.query, items=(*found, *said.values()))
        return {hit.chunk.id for hit in self.memory.resolve(candidates).kept}


def _as_turn(message: ChatMessage) -> Turn:
    extra = message.additional_kwargs
    when = first(extra, TIME_KEYS)
    return Turn(
        text=message.content,
        at=None if when is None else parse_time(when),
        speaker=message.role.value,
        session=extra.get("session_id"),
    )


def _as_candidate(turn: Turn, *, scope: Scope, now: datetime) -> Candidate:
    # The id depends on the content, since the memory's oracle caches verdicts by id.
    content = repr((turn.text, turn.speaker, turn.at, scope))
    chunk = Chunk(
        id=f"chat-{sha256(content.encode()).hexdigest()}",
        text=turn.text,
        at=turn.at or now,
        scope=scope,
        speaker=turn.speaker,
    )
    return Candidate(chunk=chunk, relevance=0.0, origin="stm")


def _as_nodes(result: SearchResult) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(
                id_=hit.chunk.id,
                text=hit.chunk.text,
                metadata=metadata_of(hit, result),
                excluded_llm_metadata_keys=list(BOOKKEEPING),
                excluded_embed_metadata_keys=list(BOOKKEEPING),
            ),
            score=hit.relevance,
        )
        for hit in result
    ]


def _annotated(hit: NodeWithScore, witness: NodeWithScore | None) -> NodeWithScore:
    if witness is None:
        return hit
    newer = witness.node
    reason = witness_fields(id=newer.node_id, text=newer.get_content(MetadataMode.NONE))
    # A copy: indexes return their own nodes, which must not change for the next question.
    node = hit.node.model_copy(update={"metadata": {**hit.node.metadata, SHADOWED_BY: reason}})
    return NodeWithScore(node=node, score=hit.score)
