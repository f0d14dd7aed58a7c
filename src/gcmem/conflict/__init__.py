"""Stage 4: κ, the conflict oracle."""

from gcmem.conflict.gold import GoldOracle
from gcmem.conflict.heuristic import HeuristicClassifier
from gcmem.conflict.pairwise import PairwiseOracle

__all__ = ["GoldOracle", "HeuristicClassifier", "PairwiseOracle"]
