"""Stage 5: temporal dominance Φ_T, and the baselines and ablations it is compared with."""

from gcmem.resolve.baselines import (
    MultiFactor,
    multi_factor,
    plain_set,
    standard,
    time_decay,
    timestamp_rerank,
)
from gcmem.resolve.by_ledger import LedgerResolver
from gcmem.resolve.outcomes import Policy, outcomes
from gcmem.resolve.resolver import Resolver
from gcmem.resolve.temporal import temporal_dominance

__all__ = [
    "LedgerResolver",
    "MultiFactor",
    "Policy",
    "Resolver",
    "multi_factor",
    "outcomes",
    "plain_set",
    "standard",
    "temporal_dominance",
    "time_decay",
    "timestamp_rerank",
]
