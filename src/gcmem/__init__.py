"""gcmem: memory for agents that knows which facts are still true."""

from gcmem.errors import GCMemError
from gcmem.memory import Memory, reindex
from gcmem.protocols import (
    ChatModel,
    ChunkLog,
    ConflictOracle,
    Encoder,
    PairClassifier,
    QueryExpander,
    Reader,
    RecencyBuffer,
    Store,
    VectorIndex,
)
from gcmem.resolve import temporal_dominance
from gcmem.resolve.documents import DocumentResolution, DocumentShadow, resolve
from gcmem.settings import Settings
from gcmem.types import (
    Answer,
    Candidate,
    CandidateSet,
    Chunk,
    ChunkFilter,
    Conflict,
    Prompt,
    Reading,
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
    "ChatModel",
    "Chunk",
    "ChunkFilter",
    "ChunkLog",
    "Conflict",
    "ConflictOracle",
    "DocumentResolution",
    "DocumentShadow",
    "Encoder",
    "GCMemError",
    "Memory",
    "PairClassifier",
    "Prompt",
    "QueryExpander",
    "Reader",
    "Reading",
    "RecencyBuffer",
    "Resolution",
    "Scope",
    "SearchResult",
    "Settings",
    "Shadow",
    "Skew",
    "Store",
    "Timings",
    "Turn",
    "VectorIndex",
    "__version__",
    "reindex",
    "resolve",
    "temporal_dominance",
]
