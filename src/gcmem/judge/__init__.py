"""Stage 4: κ, the conflict oracle."""

from gcmem.judge.cascade import CascadeOracle
from gcmem.judge.gold import GoldOracle
from gcmem.judge.llm import LLMOracle, LLMUsage
from gcmem.judge.local.classifier import LocalClassifier
from gcmem.judge.local.focus import Focus
from gcmem.judge.local.joint import JointOracle
from gcmem.judge.nli import NLIClassifier
from gcmem.judge.pairwise import PairwiseOracle, TopicGate

__all__ = [
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
