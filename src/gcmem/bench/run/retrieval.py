"""Measures how much of the evidence a search finds, by the product and by plain retrieval."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from gcmem.bench.data.evidence import Conversation, Question
from gcmem.bench.data.streams import Texts
from gcmem.bench.run.yardsticks import BM25, Cosine, Yardstick, best
from gcmem.defaults import default_classifier
from gcmem.judge import GoldOracle
from gcmem.memory import Memory
from gcmem.protocols import Encoder, Progress, Store
from gcmem.settings import Settings
from gcmem.types import Chunk, Turn

CUTS = (5, 10, 20)
"""Recall is measured among this many turns."""
MAIN_CUT = 10
"""The cut of hits and categories."""
FUSED, RERANKED = "fused", "re-ranked"
PRODUCT: dict[str, dict[str, Any]] = {
    "dense": {"lexical_weight": 0.0},
    "lexical": {"lexical_weight": 1.0},
    FUSED: {},
    RERANKED: {},
}
"""The product's rows, with the settings that are not its defaults."""
PLAIN_WORDS, PLAIN_DENSE = "BM25, bare text", "dense, bare text"
USER, TURN_KEY = "user", "turn"

Search = Callable[[str], list[str]]
"""Returns the ids of the best turns for a question, best first, each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The result of one question in one row; `recall` is by `CUTS`."""

    row: str
    question: int
    """Position of the question in the dataset."""
    category: str
    recall: tuple[float, ...]
    hit: bool
    ms: float


def measure(
    conversations: Sequence[Conversation],
    *,
    encoder: Encoder,
    rerank: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Asked]:
    """Asks every question in a memory of its conversation; `rerank` questions are re-ranked too.

    Each text is encoded once, but each question anew, since that is part of a search.
    """
    texts = Texts(encoder)
    count = sum(len(c.questions) for c in conversations)
    reranked = set(random.Random(seed).sample(range(count), min(rerank, count)))
    total = count + sum(len(c.turns) for c in conversations)
    done, number = 0, 0
    asked: list[Asked] = []

    def advance(steps: int) -> None:
        nonlocal done
        done += steps
        if progress is not None:
            progress(done, total)

    for conversation in conversations:
        memory, chunks = _filled(conversation, texts, advance)
        with memory:
            searches = _searches(conversation, memory.store, chunks, texts, bool(reranked))
            for question in conversation.questions:
                for row, search in searches.items():
                    if row != RERANKED or number in reranked:
                        asked.append(_ask(row, search, conversation, question, number))
                number += 1
                advance(1)
    return asked


def product_memory(row: str, *, store: Store, encoder: Encoder) -> Memory:
    """Returns a memory with the product's defaults except for what the row is about."""
    return Memory(
        store=store,
        encoder=encoder,
        oracle=GoldOracle(()),  # nothing is judged: retrieval is measured before removal
        reranker=default_classifier() if row == RERANKED else None,
        settings=replace(Settings(), **PRODUCT[row]),
    )


def recall(found: Sequence[str], evidence: frozenset[str], *, k: int) -> float:
    """Returns the share of the evidence among the first k."""
    return len(evidence.intersection(found[:k])) / len(evidence)


def _filled(
    conversation: Conversation, texts: Texts, advance: Callable[[int], None]
) -> tuple[Memory, list[Chunk]]:
    times = [turn.at for turn in conversation.turns if turn.at is not None]
    # The memory's clock, so that no event is in the future.
    ended = max(times, default=datetime.now(UTC))
    memory = Memory(":memory:", encoder=texts, oracle=GoldOracle(()), clock=lambda: ended)
    chunks: list[Chunk] = []
    try:
        for session in conversation.sessions():
            turns = [
                Turn(
                    id=turn.id, text=turn.text, at=turn.at, speaker=turn.speaker,
                    session=turn.session, metadata={TURN_KEY: turn.id},
                )
                for turn in session
            ]  # fmt: skip
            chunks += memory.add(turns, user_id=USER)
            advance(len(session))
    except BaseException:
        memory.close()
        raise
    return memory, chunks


def _searches(
    conversation: Conversation, store: Store, chunks: list[Chunk], texts: Texts, rerank: bool
) -> dict[str, Search]:
    searches: dict[str, Search] = {}
    for row in PRODUCT:
        if row == RERANKED and not rerank:
            continue
        # Not `texts`: a search must encode its question.
        searches[row] = _by_memory(product_memory(row, store=store, encoder=texts.encoder))
    said = [turn.text for turn in conversation.turns]
    searches[PLAIN_WORDS] = _by_yardstick(BM25(said), [turn.id for turn in conversation.turns])
    vectors = texts.encode([chunk.text for chunk in chunks])
    turn_ids = [chunk.metadata[TURN_KEY] for chunk in chunks]
    searches[PLAIN_DENSE] = _by_yardstick(Cosine(vectors, texts.encoder), turn_ids)
    return searches


def _by_memory(memory: Memory) -> Search:
    def search(question: str) -> list[str]:
        found = memory.candidates(question, k=max(CUTS), user_id=USER)
        return list(dict.fromkeys(item.chunk.metadata[TURN_KEY] for item in found.items))

    return search


def _by_yardstick(yardstick: Yardstick, turn_ids: Sequence[str]) -> Search:
    return lambda question: best(yardstick.scores(question), turn_ids, max(CUTS))


def _ask(
    row: str, search: Search, conversation: Conversation, question: Question, number: int
) -> Asked:
    started = time.perf_counter()
    found = search(question.text)
    ms = (time.perf_counter() - started) * 1000
    units = conversation.units(found[: max(CUTS)])
    return Asked(
        row=row,
        question=number,
        category=question.category,
        recall=tuple(recall(units, question.evidence, k=k) for k in CUTS),
        hit=recall(units, question.evidence, k=MAIN_CUT) > 0,
        ms=ms,
    )
