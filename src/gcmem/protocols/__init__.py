"""Every extension point of gcmem: implement one of these protocols to plug something in.

All are synchronous and take batches. `gcmem.testing` has a conformance suite for each store part.
"""

from gcmem.protocols.models import (
    AnswerClassifier,
    CandidateResolver,
    ChatModel,
    ConflictOracle,
    Encoder,
    PairClassifier,
    Progress,
    QueryEncoder,
    QuickClassifier,
    Reader,
    StanceClassifier,
    Vectors,
)
from gcmem.protocols.store import Store
from gcmem.protocols.stores import (
    BackupSource,
    ChunkLog,
    EngineHit,
    EngineMark,
    Ledger,
    LogState,
    RecencyBuffer,
    ScoreCache,
    ScoreKey,
    ScoreKind,
    SearchEngine,
    SlowEraser,
    VectorIndex,
    WordIndex,
)

__all__ = [
    "AnswerClassifier",
    "BackupSource",
    "CandidateResolver",
    "ChatModel",
    "ChunkLog",
    "ConflictOracle",
    "Encoder",
    "EngineHit",
    "EngineMark",
    "Ledger",
    "LogState",
    "PairClassifier",
    "Progress",
    "QueryEncoder",
    "QuickClassifier",
    "Reader",
    "RecencyBuffer",
    "ScoreCache",
    "ScoreKey",
    "ScoreKind",
    "SearchEngine",
    "SlowEraser",
    "StanceClassifier",
    "Store",
    "VectorIndex",
    "Vectors",
    "WordIndex",
]
