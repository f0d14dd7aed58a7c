"""The parts that are used where the caller injects none: local, offline, shared."""

from __future__ import annotations

from functools import lru_cache

from gcmem.answer import LocalReader
from gcmem.encode import CachedEncoder, MiniLMEncoder
from gcmem.judge import Focus, JointOracle, LocalClassifier, PairwiseOracle, TopicGate
from gcmem.protocols import ConflictOracle, Encoder, Reader, VerdictCache


@lru_cache(maxsize=1)
def default_encoder() -> Encoder:
    """Returns the shipped encoder, loaded once for the whole process."""
    return CachedEncoder(MiniLMEncoder())


@lru_cache(maxsize=1)
def default_classifier() -> LocalClassifier:
    """Returns the shipped pair classifier, loaded once for the whole process."""
    return LocalClassifier()


def default_oracle(cache: VerdictCache | None = None) -> ConflictOracle:
    """Returns the shipped oracle; its gate uses the shipped encoder, whatever the store's is."""
    classifier = default_classifier()
    pairwise = PairwiseOracle(
        classifier,
        threshold=classifier.threshold,
        gate=TopicGate(default_encoder()),
        focus=Focus(default_encoder()),
        cache=cache,
    )
    return JointOracle(classifier, pairwise, cache=cache)


def default_reader(encoder: Encoder) -> Reader:
    """Returns the reader that needs no language model."""
    classifier = default_classifier()
    return LocalReader(encoder, stances=classifier, answers=classifier)
