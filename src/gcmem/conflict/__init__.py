"""Stage 4: κ, the conflict oracle."""

from gcmem.conflict.gold import GoldOracle
from gcmem.conflict.local import LocalClassifier
from gcmem.conflict.pairwise import PairwiseOracle, TopicGate

__all__ = ["GoldOracle", "LocalClassifier", "PairwiseOracle", "TopicGate"]
