"""The default encoder, oracle and reader: local, offline, shared by the process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from gcmem.answer import LocalReader
from gcmem.encode import CachedEncoder, MiniLMEncoder
from gcmem.judge import Focus, JointOracle, LocalClassifier, PairwiseOracle, TopicGate
from gcmem.judge.fitness import may_remove
from gcmem.protocols import ConflictOracle, Encoder, Ledger, Reader, ScoreCache
from gcmem.resolve import Policy, Resolver
from gcmem.settings import Settings
from gcmem.types import Fitness


@lru_cache(maxsize=1)
def default_encoder() -> Encoder:
    """Returns the shipped encoder, loaded once for the whole process."""
    return CachedEncoder(MiniLMEncoder())


@lru_cache(maxsize=1)
def default_classifier() -> LocalClassifier:
    """Returns the shipped pair classifier, loaded once for the whole process."""
    return LocalClassifier()


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
    """Returns a resolver around `oracle`, by default the shipped one.

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


def default_reader(encoder: Encoder) -> Reader:
    """Returns the reader that needs no language model."""
    classifier = default_classifier()
    return LocalReader(encoder, stances=classifier, answers=classifier)
