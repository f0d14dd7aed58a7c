from __future__ import annotations

from pathlib import Path

from gcmem.protocols import Encoder, Store
from gcmem.store.qdrant import open_qdrant
from gcmem.testing.store_suite import StoreSuite


class TestQdrantInMemory(StoreSuite):
    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        return open_qdrant("qdrant://:memory:", encoder=encoder, stm_size=5)
