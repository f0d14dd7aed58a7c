from __future__ import annotations

from pathlib import Path

import pytest

from gcmem.protocols import Encoder, Store
from gcmem.store.postgres import open_postgres
from gcmem.testing.store_suite import StoreSuite
from tests.postgres_server import PostgresServer


class TestPostgres(StoreSuite):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer) -> None:
        self.postgres = postgres
        self.urls: dict[Path, str] = {}

    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        if tmp_path not in self.urls:
            self.urls[tmp_path] = self.postgres.make_schema()
        return open_postgres(self.urls[tmp_path], encoder=encoder, stm_size=5)
