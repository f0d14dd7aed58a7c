"""DSPy: a retriever for programs, for `dspy.Retrieve` and for agents (`gcmem[dspy]`)."""

from __future__ import annotations

import asyncio
from typing import Any, Self, Unpack

from gcmem.errors import MissingExtraError
from gcmem.integrations.backfill import search_filled
from gcmem.integrations.conversion import SearchOptions, as_line
from gcmem.memory import Memory
from gcmem.types import SearchResult

try:
    import dspy
except ModuleNotFoundError:
    raise MissingExtraError("dspy", package="dspy") from None


class GCMemRetriever(dspy.Retrieve):
    """Retrieves at most k passages from a `Memory` that are still true.

    `retriever(question).passages` are texts; the prediction also holds their `ids`, `times` and
    `scores`, and the `shadows` with their witnesses. Arguments of a call override those given here.
    Pass `as_rm` to `dspy.configure(rm=...)`, and `search_memory` as a tool to agents.
    """

    def __init__(self, memory: Memory, *, k: int = 3, **search: Unpack[SearchOptions]) -> None:
        super().__init__(k=k)
        self.memory = memory
        self.search = search

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Optimizers copy programs; every copy must use the same memory.
        return type(self)(self.memory, k=self.k, **self.search)

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Returns the state saved with a program: only k, since a memory has its own file."""
        state: dict[str, Any] = super().dump_state()
        return state

    def forward(
        self, query: str, k: int | None = None, **search: Unpack[SearchOptions]
    ) -> dspy.Prediction:
        """Returns a prediction whose `passages` answer the query and are still true."""
        return _as_prediction(self._find(query, k, search))

    async def acall(
        self, query: str, k: int | None = None, **search: Unpack[SearchOptions]
    ) -> dspy.Prediction:
        """The async version of calling the retriever."""
        return await asyncio.to_thread(lambda: self(query, k=k, **search))

    def as_rm(self, query: str, *, k: int | None = None, **search: Any) -> list[Any]:
        """Returns passages in the format that `dspy.Retrieve` expects from `dspy.settings.rm`."""
        return [dspy.Prediction(long_text=text) for text in self(query, k=k, **search).passages]

    def search_memory(self, query: str) -> str:
        """Recalls what is known that bears on a question; only what is still true comes back."""
        found = self._find(query, None, {})
        return "\n".join(as_line(hit) for hit in found) or "Nothing is known about this."

    def _find(self, query: str, k: int | None, search: SearchOptions) -> SearchResult:
        given: SearchOptions = {**self.search, **search}
        return search_filled(self.memory, query, k=self.k if k is None else k, **given)


def _as_prediction(found: SearchResult) -> dspy.Prediction:
    return dspy.Prediction(
        passages=[hit.chunk.text for hit in found],
        ids=[hit.chunk.id for hit in found],
        times=[hit.chunk.at and hit.chunk.at.isoformat() for hit in found],
        scores=[hit.relevance for hit in found],
        shadows=list(found.shadows),
    )
