"""The parts that are used where the caller injects none: local, offline, shared."""

from __future__ import annotations

from functools import lru_cache

from gcmem.conflict import HeuristicClassifier, PairwiseOracle
from gcmem.encode import CachedEncoder, MiniLMEncoder
from gcmem.protocols import ConflictOracle, Encoder


@lru_cache(maxsize=1)
def default_encoder() -> Encoder:
    """Returns the shipped encoder, loaded once for the whole process."""
    return CachedEncoder(MiniLMEncoder())


def default_oracle(encoder: Encoder | None = None) -> ConflictOracle:
    """Returns the shipped oracle."""
    return PairwiseOracle(HeuristicClassifier(encoder or default_encoder()))
