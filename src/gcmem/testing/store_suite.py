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
from gcmem.testing.log_suite import LogSuite
from gcmem.testing.store_harness import EVERYTHING, START, StoreHarness, chunk
from gcmem.testing.verdicts_suite import VerdictsSuite
from gcmem.testing.writers_suite import WritersSuite

__all__ = [
    "EVERYTHING",
    "START",
    "BufferSuite",
    "DoorSuite",
    "IndexSuite",
    "LogSuite",
    "StoreHarness",
    "StoreSuite",
    "VerdictsSuite",
    "WritersSuite",
    "chunk",
]


class StoreSuite(LogSuite, DoorSuite, IndexSuite, BufferSuite, VerdictsSuite, WritersSuite):
    """Requirements on a whole store: index, buffer and verdicts agree with the log."""
