"""What every store must do. Subclass StoreSuite, open your store, and run it with pytest:

class TestMyStore(StoreSuite):
    def make_store(self, tmp_path, encoder):
        return my_store(tmp_path, encoder)

The suites of the single parts can be subclassed in the same way.
"""

from __future__ import annotations

from gcmem.testing.buffer_suite import BufferSuite
from gcmem.testing.door_suite import DoorSuite
from gcmem.testing.index_suite import IndexSuite
from gcmem.testing.ledger_suite import ClaimsSuite, LedgerSuite
from gcmem.testing.log_suite import LogSuite
from gcmem.testing.scores_suite import ScoresSuite
from gcmem.testing.store_harness import EVERYTHING, START, StoreHarness, chunk
from gcmem.testing.words_suite import WordsSuite
from gcmem.testing.writers_suite import WritersSuite

__all__ = [
    "EVERYTHING",
    "START",
    "BufferSuite",
    "ClaimsSuite",
    "DoorSuite",
    "IndexSuite",
    "LedgerSuite",
    "LogSuite",
    "ScoresSuite",
    "StoreHarness",
    "StoreSuite",
    "WordsSuite",
    "WritersSuite",
    "chunk",
]


class StoreSuite(
    LogSuite,
    DoorSuite,
    IndexSuite,
    WordsSuite,
    BufferSuite,
    ScoresSuite,
    ClaimsSuite,
    LedgerSuite,
    WritersSuite,
):
    """Requirements on a whole store: all that is derived agrees with the log."""
