"""The paper's theorems as experiments on growing histories.

Theorem 1: dense top-k finds about k·M/(N+M) of the new state. Theorem 2: even when it is found,
stale chunks outvote it. Theorem 3: temporal dominance recovers it. Every experiment uses streams of
real sentences with real embeddings and is compared with the theorem's prediction.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gcmem.bench.data.pool import families
from gcmem.bench.data.streams import Stream, Style, Texts, make_stream
from gcmem.judge import GoldOracle
from gcmem.protocols import Encoder, Progress, Reader, Vectors
from gcmem.resolve import Resolver
from gcmem.retrieve import retrieve
from gcmem.settings import Settings
from gcmem.types import Candidate, CandidateSet, Conflict, Prompt, Verdict

K = 10
OVERFETCH = Settings().overfetch
LENGTHS = (1, 10, 100, 1_000, 10_000, 100_000)
AFTER = (0, 5, 20, 50, 100, 200)
METHODS = ("dense", "dense 3k", "paper", "time decay", "stratified", "stratified+edges")
READ_UP_TO = 20
HALF_LIFE_STEPS = 30 * 24 * 3
"""Thirty days, at three chunks an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRow:
    """How often the new state was among the candidates, for one method and length of history."""

    style: Style
    old: int
    method: str
    recall: float
    worst: float
    """The lowest recall over all numbers of chunks after the update."""
    candidates: float
    milliseconds: float
    predicted: float | None
    """By Theorem 1; only for dense retrieval."""
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRow:
    """How often the oldest chunk is found for a question that it still answers correctly."""

    style: Style
    old: int
    method: str
    found: float
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleRow:
    """How often the answer is stale for one k, by equal vote and after temporal dominance."""

    style: Style
    old: int
    k: int
    vote: float
    """The stale share of the retrieved chunks that show a state: P(stale) by Theorem 2."""
    predicted: float
    """(k-1)/k: one valid chunk among k-1 stale ones."""
    majority_wrong: float
    after_gold: float
    """The stale share that remains after Φ_T with a perfect κ."""
    recovered: float
    """How often Φ_T with a perfect κ leaves only the new state."""
    reader_stale: float | None = None
    """How often a real reader of all k chunks answers with the old state."""
    reader_after: float | None = None
    """The same after Φ_T with a perfect κ."""


def recall_rows(
    encoder: Encoder,
    *,
    style: Style,
    lengths: Sequence[int] = LENGTHS,
    after: Sequence[int] = AFTER,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[list[RecallRow], list[StandingRow]]:
    """Runs the first experiment over every family and question, with a counter-check.

    The counter-check: a method that finds new facts must still find old facts that are true.
    """
    standing: dict[str, list[bool]] = defaultdict(list)
    found: dict[tuple[int, str], list[tuple[int, bool, int, float]]] = defaultdict(list)
    texts = Texts(encoder)
    for number, family in enumerate(families()):
        stream = make_stream(
            texts, family, style=style, old=max(lengths), after=max(after), seed=seed
        )
        _store_edges(stream, texts)
        for question in family.questions:
            query = texts.encode([question])
            for old in lengths:
                for later in after:
                    for method in METHODS:
                        started = time.perf_counter()
                        ids = _candidates(stream, question, query, old, later, method)
                        spent = (time.perf_counter() - started) * 1000
                        hit = any(chunk_id.startswith("new") for chunk_id in ids)
                        found[old, method].append((later, hit, len(ids), spent))
        for question in stream.standing.questions:
            query = texts.encode([question])
            for method in METHODS:
                ids = _candidates(stream, question, query, stream.length, max(after), method)
                standing[method].append("standing:0" in ids or "row:0" in ids)
        stream.store.close()
        if progress is not None:
            progress(number + 1, len(families()))
    return [_recall_row(style, old, method, asked) for (old, method), asked in found.items()], [
        StandingRow(
            style=style,
            old=max(lengths),
            method=method,
            found=round(float(np.mean(hits)), 4),
            asked=len(hits),
        )
        for method, hits in standing.items()
    ]


def _recall_row(
    style: Style, old: int, method: str, asked: list[tuple[int, bool, int, float]]
) -> RecallRow:
    by_after: dict[int, list[bool]] = defaultdict(list)
    for later, hit, _, _ in asked:
        by_after[later].append(hit)
    return RecallRow(
        style=style,
        old=old,
        method=method,
        recall=round(float(np.mean([hit for _, hit, _, _ in asked])), 4),
        worst=round(min(float(np.mean(hits)) for hits in by_after.values()), 4),
        candidates=round(float(np.mean([count for _, _, count, _ in asked])), 1),
        milliseconds=round(float(np.median([spent for _, _, _, spent in asked])), 2),
        predicted=round(min(1.0, K / (old + 1)), 6) if method == "dense" else None,
        asked=len(asked),
    )


def _store_edges(stream: Stream, texts: Texts) -> None:
    """Asks the questions right after the update, and keeps the conflicts found as verdicts."""
    assert stream.store.ledger is not None
    resolver = Resolver(_StateOracle(stream))
    for question in stream.family.questions:
        candidates = retrieve(
            stream.store,
            query=question,
            queries=texts.encode([question]),
            k=K,
            where=stream.where(old=stream.length, after=0),
            pool=K * OVERFETCH,
        )
        stream.store.ledger.record(
            [
                Verdict(
                    older=shadow.candidate.chunk.id,
                    older_span=(0, len(shadow.candidate.chunk.text)),
                    newer=shadow.witness.chunk.id,
                    newer_span=(0, len(shadow.witness.chunk.text)),
                    score=shadow.conflict.score,
                    oracle=_StateOracle.id,
                    recorded_at=shadow.witness.chunk.recorded_at,
                )
                for shadow in resolver.resolve(candidates).shadows
            ]
        )


class _StateOracle:
    """A perfect κ for a stream: two chunks conflict if they show different states."""

    id = GoldOracle.id

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns every pair of an old chunk and the new one."""
        ids = [item.chunk.id for item in candidates]
        new = [i for i in ids if self._stream.state_of(i) == self._stream.new_state]
        old = [i for i in ids if self._stream.state_of(i) == self._stream.old_state]
        return tuple(
            Conflict(older=a, newer=b, score=1.0, oracle=self.id) for a in old for b in new
        )


def _candidates(
    stream: Stream, question: str, query: Vectors, old: int, after: int, method: str
) -> list[str]:
    where = stream.where(old=old, after=after)
    if method == "time decay":
        return _decayed(stream, query, old, after)
    strategy = {"dense 3k": "dense", "stratified+edges": "stratified"}.get(method, method)
    found = retrieve(
        stream.store,
        query=question,
        queries=query,
        k=K * OVERFETCH if method == "dense 3k" else K,
        where=where,
        strategy=strategy,  # type: ignore[arg-type]
        pool=K * OVERFETCH,
        judge=_StateOracle.id if method == "stratified+edges" else None,
    )
    return [item.chunk.id for item in found]


def _decayed(stream: Stream, query: Vectors, old: int, after: int) -> list[str]:
    """Returns the k chunks with the highest relevance · 2^(-age / half-life)."""
    rows = stream.rows(old=old, after=after)
    scores = np.maximum(stream.vectors[rows] @ query[0], 0)
    ages = np.arange(len(scores))[::-1]
    scores = scores * 0.5 ** (ages / HALF_LIFE_STEPS)
    best = np.argsort(-scores)[:K] + rows.start
    return ["new:" if n == stream.length else f"row:{n}" for n in best]


def stale_rows(
    encoder: Encoder,
    *,
    style: Style,
    old: int = 100,
    ks: Sequence[int] = (1, 2, 3, 5, 10, 20, 50, 100),
    seed: int = 0,
    reader: Reader | None = None,
) -> list[StaleRow]:
    """Runs the second and third experiment: the vote over k chunks, before and after Φ_T.

    A `reader` also answers, up to k = 20; larger k would take long and add nothing.
    """
    texts = Texts(encoder)
    streams = [
        make_stream(texts, family, style=style, old=old, after=20, seed=seed)
        for family in families()
    ]
    rows = []
    for k in ks:
        sets = [
            (stream, candidates) for stream in streams for candidates in _sets(stream, texts, k)
        ]
        votes = [_vote(stream, candidates) for stream, candidates in sets]
        left = [_vote(stream, candidates, after_dominance=True) for stream, candidates in sets]
        rows.append(
            StaleRow(
                style=style,
                old=old,
                k=k,
                vote=_mean(votes),
                predicted=round((k - 1) / k, 4),
                majority_wrong=_mean([vote > 0.5 for vote in votes]),
                after_gold=_mean(left),
                recovered=_mean([vote == 0 for vote in left]),
                reader_stale=_read(sets, reader, k),
                reader_after=_read(sets, reader, k, after_dominance=True),
            )
        )
    for stream in streams:
        stream.store.close()
    return rows


def _sets(stream: Stream, texts: Texts, k: int) -> Iterator[CandidateSet]:
    """Yields the k most similar chunks, including the new state as Theorem 2 assumes."""
    for question in stream.family.questions:
        found = retrieve(
            stream.store,
            query=question,
            queries=texts.encode([question]),
            k=k,
            where=stream.where(old=stream.length, after=20),
            strategy="stratified",
            pool=K * OVERFETCH + k,
        )
        new = [item for item in found if item.chunk.id.startswith("new")]
        rest = [item for item in found if item.chunk.id.startswith("old")]
        if new:
            items = tuple(new + rest[: k - 1])
            yield CandidateSet(query=question, items=items)


def _vote(stream: Stream, candidates: CandidateSet, *, after_dominance: bool = False) -> float:
    items = _left(stream, candidates) if after_dominance else candidates.items
    stale = [stream.state_of(item.chunk.id) == stream.old_state for item in items]
    return float(np.mean(stale)) if stale else 0.0


def _left(stream: Stream, candidates: CandidateSet) -> tuple[Candidate, ...]:
    return Resolver(_StateOracle(stream)).resolve(candidates).kept


def _read(
    sets: Sequence[tuple[Stream, CandidateSet]],
    reader: Reader | None,
    k: int,
    *,
    after_dominance: bool = False,
) -> float | None:
    if reader is None or k > READ_UP_TO:
        return None
    stale = []
    for stream, candidates in sets:
        items = _left(stream, candidates) if after_dominance else candidates.items
        prompt = Prompt(
            question=candidates.query,
            chunks=tuple(item.chunk for item in items),
            options=stream.options,
            mode="forced-choice",
        )
        stale.append(reader.read([prompt])[0].choice == stream.old_state)
    return _mean(stale)


def _mean(values: Sequence[float | bool]) -> float:
    return round(float(np.mean(values)), 4) if values else float("nan")
