"""Reads the best candidates once more: does the chunk answer the question?"""

from __future__ import annotations

from dataclasses import replace

from gcmem.protocols import AnswerClassifier, ChunkLog
from gcmem.ranking import ranked
from gcmem.retrieve.turns import pieces_last
from gcmem.types import CandidateSet

TOP = 30
"""How many candidates are read."""
SHARE = 1 / 3
"""How much the reading counts; the rest is the relevance from before."""


def rerank(
    candidates: CandidateSet, classifier: AnswerClassifier, *, log: ChunkLog
) -> CandidateSet:
    """Returns the candidates in a new order, with their new relevance."""
    top = candidates.items[:TOP]
    texts = [f"{item.chunk.speaker}: {item.chunk.text}" for item in top]
    answers = classifier.answers(candidates.query, texts) if texts else []
    answers += [0.0] * (len(candidates) - len(top))
    items = [
        replace(item, relevance=(1 - SHARE) * item.relevance + SHARE * answer)
        for item, answer in zip(candidates.items, answers, strict=True)
    ]
    by_id = {item.chunk.id: item for item in items}
    order = ranked([item.relevance for item in items], [item.chunk.seq or 0 for item in items])
    ids = pieces_last([items[n].chunk.id for n in order], log)
    return replace(candidates, items=tuple(by_id[i] for i in ids))
