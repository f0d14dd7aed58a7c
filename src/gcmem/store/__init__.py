"""Stage 2: the log, and the index (MTM) and buffer (STM) derived from it."""

from __future__ import annotations

from pathlib import Path

from gcmem.protocols import Encoder, Store
from gcmem.store.recent import LogBuffer
from gcmem.store.sqlite.claims import SQLiteClaims
from gcmem.store.sqlite.index import NumpyIndex
from gcmem.store.sqlite.ledger import SQLiteLedger
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.store.sqlite.scores import SQLiteScores
from gcmem.store.sqlite.words import SQLiteWords, WordPart

__all__ = ["LogBuffer", "NumpyIndex", "SQLiteLedger", "SQLiteLog", "SQLiteScores", "open_embedded"]


def open_embedded(path: Path | str, *, encoder: Encoder, stm_size: int) -> Store:
    """Opens the embedded store in one file; ":memory:" is lost when it is closed."""
    log = SQLiteLog(path)
    index = NumpyIndex(
        log, encoder_id=encoder.id, dimensions=encoder.dimensions, parts=[WordPart()]
    )
    return Store(
        log=log,
        index=index,
        words=SQLiteWords(log, index.rows),
        buffer=LogBuffer(log, capacity=stm_size),
        scores=SQLiteScores(log),
        claims=SQLiteClaims(log),
        ledger=SQLiteLedger(log),
    )
