"""Stage 4: κ, the conflict oracle."""

from gcmem.conflict.by_trust import ByTrust
from gcmem.conflict.cascade import CascadeOracle
from gcmem.conflict.focus import Focus
from gcmem.conflict.gold import GoldOracle
from gcmem.conflict.joint import JointOracle
from gcmem.conflict.llm import LLMOracle, LLMUsage
from gcmem.conflict.local import LocalClassifier
from gcmem.conflict.nli import NLIClassifier
from gcmem.conflict.pairwise import PairwiseOracle, TopicGate

__all__ = [
    "ByTrust",
    "CascadeOracle",
    "Focus",
    "GoldOracle",
    "JointOracle",
    "LLMOracle",
    "LLMUsage",
    "LocalClassifier",
    "NLIClassifier",
    "PairwiseOracle",
    "TopicGate",
]
