"""gcmem: memory for agents that knows which facts are still true."""

from gcmem.answer import LLMReader
from gcmem.encode import (
    GGUFEncoder,
    MiniLMEncoder,
    MultilingualEncoder,
    OnnxEncoder,
    OpenAIEncoder,
    SentenceTransformersEncoder,
)
from gcmem.errors import GCMemError
from gcmem.judge import CascadeOracle, LLMOracle, NLIClassifier, PairwiseOracle
from gcmem.llm import OpenAIChat
from gcmem.memory import Memory
from gcmem.protocols import ConflictOracle, Encoder, QueryEncoder, Reader
from gcmem.reindexing import reindex
from gcmem.resolve.documents import DocumentResolution, DocumentShadow, resolve
from gcmem.resolve.temporal import temporal_dominance
from gcmem.settings import Settings
from gcmem.types import (
    Answer,
    Candidate,
    CandidateSet,
    Chunk,
    Conflict,
    Resolution,
    Scope,
    SearchResult,
    Shadow,
    Skew,
    Timings,
    Turn,
)

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Candidate",
    "CandidateSet",
    "CascadeOracle",
    "Chunk",
    "Conflict",
    "ConflictOracle",
    "DocumentResolution",
    "DocumentShadow",
    "Encoder",
    "GCMemError",
    "GGUFEncoder",
    "LLMOracle",
    "LLMReader",
    "Memory",
    "MiniLMEncoder",
    "MultilingualEncoder",
    "NLIClassifier",
    "OnnxEncoder",
    "OpenAIChat",
    "OpenAIEncoder",
    "PairwiseOracle",
    "QueryEncoder",
    "Reader",
    "Resolution",
    "Scope",
    "SearchResult",
    "SentenceTransformersEncoder",
    "Settings",
    "Shadow",
    "Skew",
    "Timings",
    "Turn",
    "__version__",
    "reindex",
    "resolve",
    "temporal_dominance",
]
