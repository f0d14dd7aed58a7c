"""The default encoder, judge, oracle and reader: local, offline, shared by the process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from gcmem.answer import LocalReader
from gcmem.calls import current_call
from gcmem.encode import CachedEncoder, MiniLMEncoder
from gcmem.encode.minilm import FOLDERS
from gcmem.ingest.claims import ClaimDetector, EveryStatement
from gcmem.judge import Focus, JointOracle, LocalClassifier, PairwiseOracle, TopicGate
from gcmem.judge.ahead import Judging
from gcmem.judge.by_oracle import OracleJudge
from gcmem.judge.fitness import may_remove
from gcmem.judge.local.claims import LocalJudge
from gcmem.protocols import (
    ClaimJudge,
    ConflictOracle,
    Encoder,
    Ledger,
    Reader,
    ScoreCache,
    Store,
    Vectors,
)
from gcmem.resolve import LedgerResolver, Policy, Resolver
from gcmem.retrieve import neighbours
from gcmem.settings import Settings
from gcmem.types import Chunk, ChunkFilter, Fitness

logger = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def default_encoder() -> Encoder:
    """Returns the shipped encoder, loaded once for the whole process."""
    return CachedEncoder(MiniLMEncoder())


@lru_cache(maxsize=4)
def shipped_encoder(encoder_id: str) -> Encoder | None:
    """Returns an older version of the shipped encoder by its id, or None."""
    for version in FOLDERS:
        if encoder_id == f"gcmem-encoder@{version}":
            return CachedEncoder(MiniLMEncoder(version=version))
    return None


def open_fitting(
    open_with: Callable[[Encoder], Store], encoder: Encoder | None
) -> tuple[Store, Encoder]:
    """Opens a store with `encoder`, by default the version of the shipped one that built it."""
    used = default_encoder() if encoder is None else CachedEncoder.around(encoder)
    store = open_with(used)
    stored = store.index.encoder_id
    if encoder is not None or stored in (None, used.id):
        return store, used
    older = shipped_encoder(str(stored))
    if older is None:
        return store, used
    logger.info("%s was built with %s; gcmem reindex moves it on", store.log.location, stored)
    store.close()
    return open_with(older), older


@lru_cache(maxsize=1)
def default_classifier() -> LocalClassifier:
    """Returns the shipped pair classifier, loaded once for the whole process."""
    return LocalClassifier()


@lru_cache(maxsize=1)
def default_judge() -> LocalJudge:
    """Returns the shipped judge of claims; it uses one core."""
    return LocalJudge(default_classifier().with_workers(1))


def default_oracle(cache: ScoreCache | None = None) -> ConflictOracle:
    """Returns the shipped oracle; its gate always uses the shipped encoder, not the store's."""
    classifier = default_classifier()
    pairwise = PairwiseOracle(
        classifier,
        threshold=classifier.threshold,
        gate=TopicGate(default_encoder()),
        focus=Focus(default_encoder()),
        cache=cache,
    )
    return JointOracle(classifier, pairwise, cache=cache)


def make_resolver(
    oracle: ConflictOracle | None = None,
    *,
    settings: Settings | None = None,
    qualification: Mapping[str, Fitness] | None = None,
    require_qualified: bool = True,
    scores: ScoreCache | None = None,
    ledger: Ledger | None = None,
) -> Resolver:
    """Returns a resolver that asks `oracle`, by default the shipped one, at read time.

    An oracle that is unfit or was never measured only annotates, unless `require_qualified=False`.
    """
    settings = settings or Settings()
    oracle = oracle or default_oracle(scores)
    return Resolver(
        oracle,
        policy=Policy(
            max_skew=settings.max_skew,
            respect_trust=settings.respect_trust,
            removes=not require_qualified or may_remove(oracle, qualification or {}),
        ),
        ledger=ledger,
    )


def make_judging(
    store: Store,
    *,
    encoder: Encoder,
    settings: Settings,
    clock: Callable[[], datetime],
    judge: ClaimJudge | None = None,
    oracle: ConflictOracle | None = None,
) -> Judging | None:
    """Returns what judges a store's claims: a judge, an oracle, or by default the shipped judge.

    Returns None if the store can't keep verdicts.
    """
    if store.ledger is None or store.claims is None:
        return None
    detector = EveryStatement(encoder) if oracle is not None else ClaimDetector(default_encoder())
    is_own_encoder = detector.encoder_id == encoder.id

    def near(text: str, vector: Vectors, where: ChunkFilter) -> list[Chunk]:
        if not is_own_encoder:
            vector = encoder.encode([text])[0]
        return neighbours(
            store, text, vector, where,
            k=settings.neighbours, lexical_weight=settings.lexical_weight,
        )  # fmt: skip

    used = OracleJudge(oracle) if oracle is not None else judge or default_judge()
    return Judging(store, detector=detector, judge=used, neighbours=near, clock=clock)


def make_ledger_resolver(
    store: Store,
    judging: Judging,
    *,
    encoder: Encoder,
    settings: Settings,
    removes: bool,
) -> LedgerResolver:
    """Returns a resolver that uses the verdicts in the store's ledger."""
    assert store.ledger is not None
    judge = judging.judge
    sure = judge.sure if settings.sure is None else settings.sure
    likely = min(judge.likely, sure)

    def similar(question: str, texts: Sequence[str]) -> list[float]:
        # The question's vector is known already: the search has just used it.
        asked = current_call().vectors([("question", question)], [question], encoder, queries=True)
        return [float(score) for score in encoder.encode(list(texts)) @ asked[0]]

    return LedgerResolver(
        judging,
        store.ledger,
        policy=Policy(
            max_skew=settings.max_skew,
            respect_trust=settings.respect_trust,
            removes=removes,
            english_only=getattr(judge, "language", None) == "en",
        ),
        sure=sure if settings.act_on == "sure" else likely,
        likely=likely,
        budget_s=settings.judge_budget_ms / 1000,
        similar=similar,
    )


def default_reader(encoder: Encoder) -> Reader:
    """Returns the reader that needs no language model."""
    classifier = default_classifier()
    return LocalReader(encoder, stances=classifier, answers=classifier)
