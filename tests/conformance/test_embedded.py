from __future__ import annotations

from pathlib import Path

from gcmem.protocols import Encoder, Store
from gcmem.store import open_embedded
from gcmem.testing.store_suite import StoreSuite


class TestEmbeddedFile(StoreSuite):
    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        return open_embedded(tmp_path / "m.db", encoder=encoder, stm_size=5)


class TestEmbeddedInMemory(StoreSuite):
    durable = False
    shared = False

    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        return open_embedded(":memory:", encoder=encoder, stm_size=5)
