from __future__ import annotations

from pathlib import Path

import pytest

from gcmem.protocols import Encoder, Store
from gcmem.store.postgres import PostgresSettings, open_postgres
from gcmem.testing.store_suite import StoreSuite
from tests.postgres_server import PostgresServer


class TestPostgres(StoreSuite):
    settings = PostgresSettings()

    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer) -> None:
        self.postgres = postgres
        self.databases: dict[Path, str] = {}

    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        if tmp_path not in self.databases:
            self.databases[tmp_path] = self.postgres.make_database()
        url = self.postgres.url(self.databases[tmp_path])
        return open_postgres(url, encoder=encoder, stm_size=5, settings=self.settings)
