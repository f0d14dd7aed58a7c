"""What the routes share: the memory, the worker threads and the metrics."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from starlette.requests import Request

from gcmem.defaults import default_oracle
from gcmem.errors import GCMemError, NotAuthenticatedError, OverloadedError
from gcmem.judge import LLMOracle
from gcmem.memory import Memory
from gcmem.protocols import ClaimJudge, ConflictOracle
from gcmem.serve.http.access import Caller
from gcmem.serve.http.limits import Limits
from gcmem.serve.http.metrics import Metrics
from gcmem.serve.http.remembering import UnknownDocuments
from gcmem.serve.http.telemetry import Spans
from gcmem.serve.http.workers import Workers
from gcmem.types import Candidate, CandidateSet, Chunk, ChunkFilter, Fitness

T = TypeVar("T")

WARM_UP = ("I live in Porto.", "I moved to Lisbon.")


@dataclass(slots=True, kw_only=True)
class Service:
    """One server's parts; `is_ready` turns true when the models and the index are loaded."""

    memory: Memory
    resolver: ConflictOracle
    workers: Workers
    metrics: Metrics
    spans: Spans
    fitness: Fitness | None
    limits: Limits
    is_ready: bool = False

    @property
    def oracle_json(self) -> dict[str, Any]:
        """The oracle as replies name it."""
        return {"id": judge_of(self.memory).id, "class": self.fitness}

    async def run(self, work: Callable[[], T], *, caller: Caller) -> T:
        """Runs a call in a worker thread when it is this caller's turn."""
        return await self.workers.run(work, caller=caller.id)

    async def warm_up(self) -> None:
        """Loads the models and the index, so that the first request does not pay for it."""
        run = self.workers.run
        await asyncio.gather(run(self._load_index), run(self._load_oracle))
        self.is_ready = True

    def _load_index(self) -> None:
        vectors = self.memory.encoder.encode([WARM_UP[0]])
        self.memory.store.index.search(vectors, k=1, where=ChunkFilter())

    def _load_oracle(self) -> None:
        if isinstance(self.resolver, LLMOracle):
            return  # nothing to load, and every call costs
        start = datetime(2026, 1, 1, tzinfo=UTC)
        items = tuple(
            Candidate(
                chunk=Chunk(id=str(n), text=text, at=start + timedelta(days=n)),
                relevance=1.0,
                origin="mtm",
            )
            for n, text in enumerate(WARM_UP)
        )
        self.resolver.judge(CandidateSet(query="Where do I live?", items=items))

    def check_ready(self) -> None:
        """Raises while the server warms up or stops, or if the store can't be reached."""
        self.workers.check_open()
        if not self.is_ready:
            raise OverloadedError("the models and the index are still being loaded; try again")
        self.memory.store.log.state()

    def count_waiting(self) -> None:
        """Measures how many chunks wait to be judged; unknown while the store can't be reached."""
        if self.memory.store.ledger is None:
            return
        try:
            self.metrics.waiting.set(self.memory.pending())
        except GCMemError:
            self.metrics.waiting.set(math.nan)


def judge_of(memory: Memory) -> ConflictOracle | ClaimJudge:
    """Returns what decides about conflicts in searches: the judge of claims, or an oracle."""
    return memory.oracle if memory.resolver is memory.read_resolver else memory.judging.judge


def resolver_for(memory: Memory) -> ConflictOracle:
    """Returns an oracle for documents that are not in the log.

    The memory's oracle may cache verdicts by id, so it sees documents under random ids. The
    shipped oracle needs no cache and shares the loaded model.
    """
    shipped = default_oracle()
    if shipped.id == memory.oracle.id:
        return shipped
    return (
        memory.oracle if isinstance(memory.oracle, LLMOracle) else UnknownDocuments(memory.oracle)
    )


def caller_of(request: Request) -> Caller:
    """Returns the caller; raises if none was identified."""
    caller = getattr(request.state, "caller", None)
    if not isinstance(caller, Caller):
        raise NotAuthenticatedError("this path is for known callers only")
    return caller
