"""The MTM in PostgreSQL: pgvector, with exact search for few matches and HNSW for many."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gcmem.errors import EncoderMismatchError, IndexElsewhereError
from gcmem.protocols import Encoder, LogState, Progress, Vectors
from gcmem.ranking import ranked
from gcmem.store.frontier import ROUNDING, frontier_positions
from gcmem.store.postgres.connection import PostgresDatabase
from gcmem.store.postgres.log import PostgresLog, conditions_of, get_meta, where_clause
from gcmem.store.postgres.vectors import (
    ELSEWHERE,
    HNSW,
    HNSW_MOST_DIMENSIONS,
    PostgresVectors,
    as_literal,
    hnsw_definition,
    hnsw_is_built,
)
from gcmem.types import Chunk, ChunkFilter
from gcmem.vectors import checked

if TYPE_CHECKING:
    from psycopg import Connection

logger = logging.getLogger(__name__)

SLACK = 16
"""Extra chunks that are fetched and scored again, because the server rounds differently."""
HNSW_BUILD_LOCK = 0x67636D6E
EF_SEARCH = 200
MOST_EF_SEARCH = 1000
"""How many neighbours HNSW considers: pgvector's default of 40 finds fewer, 1000 is its maximum."""
VECTOR_HEADER_BYTES = 4


class _Filter(NamedTuple):
    """Conditions in SQL with their values."""

    conditions: list[str]
    values: list[Any]

    def newer_than(self, key: tuple[Any, int]) -> _Filter:
        return _Filter([*self.conditions, "(at, seq) > (%s, %s)"], [*self.values, *key])


class _Found(NamedTuple):
    """Sequence numbers of the most similar chunks, and of those that may be on the frontier."""

    similar: list[int]
    newest: list[int]


class PgVectorIndex:
    """Cosine over the log's vectors; always up to date, since both share one database.

    Up to `exact_below` matching chunks are compared one by one; a materialised CTE keeps the
    planner from the index, which would lose recall under a selective filter. Above that, an
    iterative HNSW scan is used if `build_hnsw` was called; if it finds too few, the exact scan
    takes over. All hits are scored again in full precision.
    """

    shares_log = True

    def __init__(
        self,
        database: PostgresDatabase,
        log: PostgresLog,
        *,
        encoder_id: str,
        dimensions: int,
    ) -> None:
        self._database = database
        self._log = log
        self._stored = PostgresVectors(database)
        self._encoder_id = encoder_id
        self._dimensions = dimensions
        self._has_advised = False

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the stored vectors; None before the first chunk."""
        return self._stored.encoder_id

    @property
    def text_version(self) -> int:
        """How the embedded texts were made."""
        return self._stored.text_version

    def hand_over(self) -> None:
        """Drops the vectors, because another index takes over."""
        self._stored.hand_over()

    def check(self, vectors: Vectors, *, count: int, encoder_id: str) -> Vectors:
        """Returns the vectors as they will be stored; raises if they can't be searched."""
        return checked(vectors, count=count, encoder_id=encoder_id)

    def upsert(self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str) -> None:
        """Writes the vectors into the log's database."""
        self._stored.insert([c.seq or 0 for c in chunks], vectors, encoder_id=encoder_id)

    def delete(self, seqs: Sequence[int]) -> None:
        """Deletes the vectors."""
        self._stored.delete(seqs)

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""
        return self._stored.get(ids)

    def state(self) -> LogState:
        """Returns the log's state: both are written in one transaction."""
        return self._log.state()

    def rebuild(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Embeds every chunk beside the old vectors and swaps them at the end."""
        return self._stored.rebuild(encoder, progress=progress)

    def close(self) -> None:
        """Does nothing: the log closes the connections."""

    def search(
        self,
        queries: Vectors,
        *,
        k: int,
        where: ChunkFilter,
        frontier: int = 0,
        beyond: int | None = None,
    ) -> list[list[tuple[str, float]]]:
        """Returns, for each query, the k most similar chunks; equal scores newest first.

        With `frontier`, the chunks on the frontier follow, newest first, without the `beyond` most
        similar.
        """
        matching = _Filter(*conditions_of(where))
        with self._database.transaction() as connection:
            # Held to the end, so that no reindex swaps the vectors between two statements.
            connection.execute("LOCK TABLE gcmem_vectors IN ACCESS SHARE MODE")
            self._check_encoder(connection)
            has_hnsw = hnsw_is_built(connection)
            results = []
            for query in queries:
                find = self._approximate if has_hnsw else self._exact
                found = find(connection, query, matching, k + SLACK, frontier)
                results.append(_in_order(connection, query, found, k, frontier, beyond))
            if not has_hnsw:
                self._advise(connection, matching)
        return results

    def score(self, queries: Vectors, ids: Sequence[str]) -> Vectors:
        """Returns the cosine of every query to every id; an unknown id scores 0."""
        scores = np.zeros((len(queries), len(ids)), dtype=np.float32)
        if not ids:
            return scores
        with self._database.transaction() as connection:
            connection.execute("LOCK TABLE gcmem_vectors IN ACCESS SHARE MODE")
            self._check_encoder(connection)
            rows = connection.execute(
                "SELECT id, vector FROM gcmem_chunks JOIN gcmem_vectors USING (seq) "
                "WHERE id = ANY(%s)",
                (list(ids),),
                binary=True,
            ).fetchall()
        vectors = {chunk_id: _vector(data) for chunk_id, data in rows}
        for column, chunk_id in enumerate(ids):
            if chunk_id in vectors:
                scores[:, column] = (queries * vectors[chunk_id]).sum(axis=1)
        return scores

    def build_hnsw(self) -> None:
        """Rebuilds the HNSW index while readers and writers continue.

        A store small enough for exact scans gets none: it would only slow down writers.
        """
        with self._database.unhurried() as connection:
            # Does not wait: whoever holds the lock is building the same index.
            row = connection.execute(
                "SELECT pg_try_advisory_lock(%s)", (HNSW_BUILD_LOCK,)
            ).fetchone()
            if row != (True,):
                return
            connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {HNSW}")
            self._check_encoder(connection)
            total = self._count(connection, _Filter([], []))
            if total <= self._database.settings.exact_below:
                return
            if self._dimensions <= HNSW_MOST_DIMENSIONS:
                definition = hnsw_definition(HNSW, "gcmem_vectors", self._dimensions)
                connection.execute(definition.replace("INDEX", "INDEX CONCURRENTLY", 1))

    def _check_encoder(self, connection: Connection[Any]) -> None:
        """Raises if another process re-embedded the store with a different encoder."""
        stored = get_meta(connection, "encoder_id")
        if stored is None and get_meta(connection, ELSEWHERE) is not None:
            raise IndexElsewhereError(self._database.location)
        if stored is not None and stored != self._encoder_id:
            raise EncoderMismatchError(
                stored=stored, given=self._encoder_id, location=self._database.location
            )

    def _count(self, connection: Connection[Any], matching: _Filter) -> int:
        """Counts the matching chunks, but stops just above `exact_below`."""
        row = connection.execute(
            f"SELECT count(*) FROM (SELECT FROM gcmem_chunks {where_clause(matching.conditions)} "
            f"LIMIT {self._database.settings.exact_below + 1}) AS counted",
            matching.values,
        ).fetchone()
        return int(row[0]) if row else 0

    def _advise(self, connection: Connection[Any], matching: _Filter) -> None:
        if self._has_advised or self._dimensions > HNSW_MOST_DIMENSIONS:
            return
        if self._count(connection, matching) > self._database.settings.exact_below:
            self._has_advised = True
            logger.warning(
                "%s compares more than %d chunks one by one in a search: correct, but slow; "
                "store.index.build_hnsw() builds an index",
                self._database.location,
                self._database.settings.exact_below,
            )

    def _exact(
        self, connection: Connection[Any], query: Vectors, matching: _Filter, most: int, depth: int
    ) -> _Found:
        """Finds the most similar chunks and the frontier in one pass over all matching chunks."""
        rows = connection.execute(
            "WITH scored AS MATERIALIZED (SELECT seq, at, -(vector <#> %s::vector) AS score "
            f"FROM gcmem_chunks JOIN gcmem_vectors USING (seq) "
            f"{where_clause(matching.conditions)}){_layers(depth)} "
            "(SELECT seq, true FROM scored ORDER BY score DESC, seq DESC LIMIT %s) "
            + "".join(
                f"UNION ALL SELECT seq, false FROM layer_{n} WHERE leads " for n in range(depth)
            ),
            [as_literal(query), *matching.values, most],
        ).fetchall()
        return _Found(
            similar=[seq for seq, is_similar in rows if is_similar],
            newest=[seq for seq, is_similar in rows if not is_similar],
        )

    def _approximate(
        self, connection: Connection[Any], query: Vectors, matching: _Filter, most: int, depth: int
    ) -> _Found:
        """Uses HNSW while many chunks match; finds the rest of the frontier exactly."""
        if self._count(connection, matching) <= self._database.settings.exact_below:
            return self._exact(connection, query, matching, most, depth)
        similar = self._nearest(connection, query, matching, most)
        if len(similar) < most:  # the scan stopped before it found enough
            return self._exact(connection, query, matching, most, depth)
        newest: list[int] = []
        # Finds the most similar, then the most similar among newer chunks, and so on. The ranges
        # shrink fast; for a small one, an exact pass is cheaper and misses nothing.
        while depth:
            near = self._nearest(connection, query, matching, depth)
            newest += near
            if len(near) < depth:
                newest += self._exact(connection, query, matching, 0, depth).newest
                break
            oldest = connection.execute(
                "SELECT at, seq FROM gcmem_chunks WHERE seq = ANY(%s) ORDER BY at, seq LIMIT 1",
                (near,),
            ).fetchone()
            matching = matching.newer_than(oldest)
            if self._count(connection, matching) <= self._database.settings.exact_below:
                newest += self._exact(connection, query, matching, 0, depth).newest
                break
        return _Found(similar=similar, newest=newest)

    def _nearest(
        self, connection: Connection[Any], query: Vectors, matching: _Filter, most: int
    ) -> list[int]:
        """Returns the most similar chunks by HNSW; fewer than `most` if its scan stopped early."""
        ef_search = min(MOST_EF_SEARCH, max(EF_SEARCH, 2 * most))
        # With sorting off, the planner must use the index.
        _set_locally(connection, enable_sort="off", ef_search=str(ef_search))
        half = f"halfvec({self._dimensions})"
        rows = connection.execute(
            "SELECT seq FROM gcmem_vectors JOIN gcmem_chunks USING (seq) "
            f"{where_clause(matching.conditions)} "
            f"ORDER BY (vector::{half}) <#> %s::{half} LIMIT %s",
            [*matching.values, as_literal(query), most],
        ).fetchall()
        _set_locally(connection, enable_sort="on", ef_search=str(ef_search))
        return [row[0] for row in rows]


def _set_locally(connection: Connection[Any], *, enable_sort: str, ef_search: str) -> None:
    connection.execute(
        "SELECT set_config('enable_sort', %s, true), set_config('hnsw.ef_search', %s, true), "
        "set_config('hnsw.iterative_scan', 'strict_order', true)",
        (enable_sort, ef_search),
    )


def _layers(depth: int) -> str:
    """Returns CTEs with the running maxima of the scores, newest first, one layer per CTE.

    The first `depth` layers contain the frontier (see `frontier_positions`), so the server sends
    only those.
    """
    layers = []
    for n in range(depth):
        source = "scored" if n == 0 else f"layer_{n - 1} WHERE NOT leads"
        layers.append(
            f", layer_{n} AS MATERIALIZED (SELECT seq, at, score, coalesce(score > {ROUNDING} + "
            "max(score) OVER (ORDER BY at DESC, seq DESC "
            f"ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS leads FROM {source})"
        )
    return "".join(layers)


def _in_order(
    connection: Connection[Any],
    query: Vectors,
    found: _Found,
    k: int,
    depth: int,
    beyond: int | None,
) -> list[tuple[str, float]]:
    """Scores the found chunks in full precision and sorts them."""
    rows = connection.execute(
        "SELECT seq, id, vector FROM gcmem_chunks JOIN gcmem_vectors USING (seq) "
        "WHERE seq = ANY(%s) ORDER BY at DESC, seq DESC",
        (list({*found.similar, *found.newest}),),
        binary=True,
    ).fetchall()
    if not rows:
        return []
    scores = (np.stack([_vector(row[2]) for row in rows]) * query).sum(axis=1)
    hit_of = {row[0]: (row[1], float(score)) for row, score in zip(rows, scores, strict=True)}
    order = ranked([hit_of[seq][1] for seq in found.similar], found.similar)
    similar = [found.similar[n] for n in order[:k]]
    wanted = set(found.newest)
    newest = [(row[0], score) for row, score in zip(rows, scores, strict=True) if row[0] in wanted]
    if newest:
        newest_scores = np.array([score for _, score in newest], dtype=np.float32)
        picked = frontier_positions(newest_scores, depth)
        known = set(similar[:beyond])
        similar += [newest[i][0] for i in picked if newest[i][0] not in known]
    return [hit_of[seq] for seq in similar]


def _vector(data: bytes) -> Vectors:
    """Reads pgvector's binary format: the number of dimensions, two unused bytes, the floats."""
    return np.frombuffer(data, dtype=">f4", offset=VECTOR_HEADER_BYTES).astype(np.float32)
