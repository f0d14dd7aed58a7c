"""Prometheus metrics in a registry of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from gcmem.protocols import ScoreCache, ScoreKey, Store
from gcmem.types import Resolution, SearchResult, Timings

__all__ = ["CONTENT_TYPE_LATEST", "CountedScores", "Metrics", "count_scores"]

STAGES = ("encode", "retrieve", "conflict", "dominance", "read")
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The server's metrics. No label names a user, a key or a text."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "gcmem_requests", "Requests.", ["route", "method", "status"], registry=self.registry
        )
        self.in_flight = Gauge(
            "gcmem_requests_in_flight", "Requests being answered.", registry=self.registry
        )
        self.request_seconds = Histogram(
            "gcmem_request_seconds",
            "Time to answer a request.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.stage_seconds = Histogram(
            "gcmem_stage_seconds",
            "Time in each stage of a read.",
            ["route", "stage"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.added = Counter("gcmem_chunks_added", "Chunks stored.", registry=self.registry)
        self.shadows = Counter(
            "gcmem_shadows",
            "Chunks, or sentences of them, that a newer one contradicted.",
            registry=self.registry,
        )
        self.verdicts = Counter(
            "gcmem_verdicts",
            "Candidates by verdict, doubtful ones among the kept; undecided counts pairs without "
            "an order in time.",
            ["verdict"],
            registry=self.registry,
        )
        self.kappa = Counter(
            "gcmem_kappa_scores",
            "Scores that the conflict oracle needed, by source.",
            ["source"],
            registry=self.registry,
        )
        self.waiting = Gauge(
            "gcmem_chunks_waiting", "Chunks that wait to be judged.", registry=self.registry
        )
        self.judged = Counter(
            "gcmem_chunks_judged", "Chunks judged ahead of searches.", registry=self.registry
        )
        self.judging_seconds = Counter(
            "gcmem_judging_seconds", "Time spent judging ahead of searches.", registry=self.registry
        )

    def observe_resolution(
        self, found: SearchResult | Resolution, *, route: str, timings: Timings
    ) -> None:
        """Counts what a read found, and how long its stages took."""
        self.shadows.inc(len(found.shadows))
        self.verdicts.labels("kept").inc(len(found.kept))
        self.verdicts.labels("doubtful").inc(len({d.candidate.chunk.id for d in found.doubtful}))
        shadowed = {shadow.candidate.chunk.id for shadow in found.shadows if shadow.is_whole}
        self.verdicts.labels("shadowed").inc(len(shadowed))
        self.verdicts.labels("undecided").inc(len(found.undecided))
        for stage in STAGES:
            spent_ms = getattr(timings, f"{stage}_ms")
            if spent_ms:
                self.stage_seconds.labels(route, stage).observe(spent_ms / 1000)

    def observe_judging(self, judged: int, seconds: float) -> None:
        """Counts chunks that were judged ahead, and how long that took."""
        self.judged.inc(judged)
        self.judging_seconds.inc(seconds)

    def render(self) -> bytes:
        """Returns the page that Prometheus reads."""
        return generate_latest(self.registry)


class CountedScores:
    """A score cache that counts its hits, and the scores that κ adds.

    Glances are not counted.
    """

    def __init__(self, cache: ScoreCache, metrics: Metrics) -> None:
        self._cache = cache
        self._hits = metrics.kappa.labels("cache")
        self._calls = metrics.kappa.labels("model")

    def get(self, key: ScoreKey, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Returns the known scores, and counts them."""
        known = self._cache.get(key, pairs)
        if key.kind != "glance":
            self._hits.inc(len(known))
        return known

    def put(self, key: ScoreKey, scores: Mapping[tuple[str, str], float]) -> None:
        """Keeps scores that a model has just computed, and counts them."""
        if key.kind != "glance":
            self._calls.inc(len(scores))
        self._cache.put(key, scores)

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes the scores of these chunks."""
        self._cache.forget(ids)

    def close(self) -> None:
        """Releases the cache."""
        self._cache.close()


def count_scores(store: Store, metrics: Metrics) -> Store:
    """Returns the store with a score cache that counts; open a Memory over it."""
    if store.scores is None:
        return store
    return replace(store, scores=CountedScores(store.scores, metrics))
