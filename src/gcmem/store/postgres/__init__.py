"""A store in PostgreSQL with pgvector: log, index, scores, claims and ledger in one database."""

from __future__ import annotations

from gcmem.protocols import Encoder, Store
from gcmem.store.postgres.claims import PostgresClaims
from gcmem.store.postgres.connection import PostgresDatabase, PostgresSettings
from gcmem.store.postgres.index import PgVectorIndex
from gcmem.store.postgres.ledger import PostgresLedger
from gcmem.store.postgres.log import PostgresLog
from gcmem.store.postgres.scores import PostgresScores
from gcmem.store.postgres.words import PostgresWords
from gcmem.store.recent import LogBuffer

__all__ = [
    "PgVectorIndex",
    "PostgresClaims",
    "PostgresDatabase",
    "PostgresLedger",
    "PostgresLog",
    "PostgresScores",
    "PostgresSettings",
    "PostgresWords",
    "open_postgres",
]


def open_postgres(
    url: str, *, encoder: Encoder, stm_size: int, settings: PostgresSettings | None = None
) -> Store:
    """Opens the store at a postgresql:// URL; creates and migrates it if needed."""
    database = PostgresDatabase(url, settings=settings)
    log = PostgresLog(database)
    return Store(
        log=log,
        index=PgVectorIndex(database, log, encoder_id=encoder.id, dimensions=encoder.dimensions),
        words=PostgresWords(database),
        buffer=LogBuffer(log, capacity=stm_size),
        scores=PostgresScores(database),
        claims=PostgresClaims(database),
        ledger=PostgresLedger(database),
    )
