"""An index in a search engine beside the log: it notices what it lacks, and catches up."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np

from gcmem.errors import EncoderMismatchError, StoreCorruptError, StoreUnavailableError
from gcmem.indexed_text import TEXT_VERSION, dense_texts
from gcmem.protocols import (
    ChunkLog,
    Encoder,
    EngineHit,
    EngineMark,
    LogState,
    Progress,
    SearchEngine,
    Vectors,
)
from gcmem.ranking import ranked
from gcmem.store.frontier import ROUNDING, frontier_positions
from gcmem.types import Chunk, ChunkFilter
from gcmem.vectors import checked, encode

logger = logging.getLogger(__name__)

PAGE = 256
TIE_ROOM = 16
MOST_TIES = 10_000
"""Among more equally similar chunks than this, the newest may be missed."""
FRONTIER_PAGE = 64
EVERYTHING = ChunkFilter()


class IndexBeside:
    """Similarity by an engine that is no part of the log's database.

    The engine keeps a mark: the state of the log up to which it is complete. Every search compares
    the mark with the log and first applies what is missing. So a crash between log and engine, an
    outage, or a lost engine costs time, but no chunk.
    """

    shares_log = False

    def __init__(self, log: ChunkLog, engine: SearchEngine, *, encoder: Encoder) -> None:
        self._log = log
        self._engine = engine
        self._encoder = encoder
        self._catching_up = threading.Lock()

    @cached_property
    def _log_id(self) -> str:
        return self._log.id

    @property
    def encoder_id(self) -> str | None:
        """The encoder of the engine's vectors; None if it has no data."""
        mark = self._engine.mark()
        return None if mark is None else mark.encoder_id

    @property
    def text_version(self) -> int:
        """How the embedded texts were made: always in the newest way."""
        return TEXT_VERSION

    def hand_over(self) -> None:
        """Drops the engine's data, because another index takes over."""
        self._engine.clear()

    def check(self, vectors: Vectors, *, count: int, encoder_id: str) -> Vectors:
        """Returns the vectors as they will be stored; raises if they can't be searched."""
        if encoder_id != self._encoder.id:
            raise EncoderMismatchError(
                stored=self._encoder.id, given=encoder_id, location=self._log.location
            )
        found = checked(
            vectors, count=count, encoder_id=encoder_id, dimensions=self._encoder.dimensions
        )
        # While the engine is down, the log still takes chunks; the engine gets them later.
        with suppress(StoreUnavailableError):
            self._check_mark(self._engine.mark())
        return found

    def upsert(self, chunks: Sequence[Chunk], vectors: Vectors, *, encoder_id: str) -> None:
        """Writes chunks, and moves the mark if nothing before them is missing."""
        if not chunks:
            return
        mark = self._engine.mark() or self._start(self._engine, self._encoder)
        self._check_mark(mark)
        self._write(self._engine, chunks, vectors)
        first, last = chunks[0].seq or 0, chunks[-1].seq or 0
        if mark.state.last_seq == first - 1:
            state = mark.state._replace(last_seq=last)
            self._engine.set_mark(mark._replace(state=state), replacing=mark)

    def delete(self, seqs: Sequence[int]) -> None:
        """Drops chunks, and whatever else the log has erased since the mark."""
        mark, state = self._engine.mark(), self._log.state()
        if mark is None:
            return
        self._engine.delete([*seqs, *self._log.erased_since(mark.state.last_erasure)])
        _moved(self._engine, mark, mark.state._replace(last_erasure=state.last_erasure))

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Returns the vectors of the chunks that exist, by id."""
        if self._catch_up() == LogState():
            return {}
        seqs = {chunk.seq or 0: chunk_id for chunk_id, chunk in self._log.get(ids).items()}
        return {seqs[seq]: vector for seq, vector in self._engine.vectors(list(seqs)).items()}

    def state(self) -> LogState:
        """Returns the state of the log up to which the engine is complete."""
        mark = self._engine.mark()
        return LogState() if mark is None else mark.state

    def score(self, queries: Vectors, ids: Sequence[str]) -> Vectors:
        """Returns the cosine of every query to every id; an unknown id scores 0."""
        scores = np.zeros((len(queries), len(ids)), dtype=np.float32)
        found = self.vectors(ids) if ids else {}
        for column, chunk_id in enumerate(ids):
            if chunk_id in found:
                scores[:, column] = (queries * found[chunk_id]).sum(axis=1)
        return scores

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
        state = self._catch_up()
        if state == LogState():
            return [[] for _ in queries]
        asked = _Search(self._engine, self._log, where, up_to_seq=state.last_seq)
        results = []
        best = asked.best(queries, k, room=max(TIE_ROOM, frontier))
        for query, hits in zip(queries, best, strict=True):
            found = hits[:k]
            if frontier:
                known = {hit.id for hit in found[:beyond]}
                newest = asked.frontier(query[None], hits, frontier)
                found = found + [hit for hit in newest if hit.id not in known]
            results.append([(hit.id, hit.score) for hit in found])
        return results

    def rebuild(self, encoder: Encoder, *, progress: Progress | None = None) -> int:
        """Embeds every chunk into a second set of data and switches over at the end.

        If it is stopped, the old vectors stay in use and the next call continues where it stopped.
        """
        successor = self._engine.successor()
        mark = successor.mark()
        state = self._log.state()
        if (
            mark is None
            or (mark.log_id, mark.encoder_id) != (self._log_id, encoder.id)
            or any(now < seen for now, seen in zip(state, mark.state, strict=True))
        ):
            successor.clear()
            mark = self._start(successor, encoder)
        total = self._log.count(EVERYTHING)
        while mark.state != (state := self._log.state()):
            mark = self._fill(successor, mark, state, encoder, total=total, progress=progress)
        self._engine.switch_to(successor)
        return self._log.count(EVERYTHING)

    def close(self) -> None:
        """Closes the engine's connections."""
        self._engine.close()

    def _catch_up(self) -> LogState:
        """Applies what the engine lacks; returns the state up to which it is complete then."""
        state, mark = self._log.state(), self._engine.mark()
        self._check_mark(mark)
        if state == LogState() or (mark is not None and mark.state == state):
            return state
        with self._catching_up:
            mark = self._engine.mark() or self._start(self._engine, self._encoder)
            self._check_mark(mark)
            missing = state.last_seq - mark.state.last_seq
            if missing < 0 or state.last_erasure < mark.state.last_erasure:
                # Another thread may have been faster; the log itself never goes back.
                if any(now < seen for now, seen in zip(self._log.state(), mark.state, strict=True)):
                    raise StoreCorruptError(
                        f"{self._engine.location} has chunks that {self._log.location} does not "
                        "have: was the log restored from a backup? Build the index anew: gcmem "
                        f"reindex --store '{self._log.location}?index={self._engine.location}'"
                    )
                return mark.state
            if missing > PAGE:
                logger.warning(
                    "%s lacks %d chunks of %s; adding them before the search",
                    self._engine.location, missing, self._log.location,
                )  # fmt: skip
            return self._fill(self._engine, mark, state, self._encoder).state

    def _fill(
        self,
        engine: SearchEngine,
        mark: EngineMark,
        state: LogState,
        encoder: Encoder,
        *,
        total: int = 0,
        progress: Progress | None = None,
    ) -> EngineMark:
        """Brings the engine from its mark to the given state of the log, page by page."""
        if erased := self._log.erased_since(mark.state.last_erasure):
            engine.delete(erased)
        done = 0
        for page in self._pages(mark.state.last_seq, state.last_seq):
            if progress is not None:
                progress(done, total)
            known = engine.vectors([chunk.seq or 0 for chunk in page])
            missing = [chunk for chunk in page if chunk.seq not in known]
            if missing:
                self._write(
                    engine, missing, encode(encoder, dense_texts(missing, version=TEXT_VERSION))
                )
            done += len(page)
            mark = _moved(engine, mark, mark.state._replace(last_seq=page[-1].seq or 0))
        return _moved(engine, mark, state)

    def _pages(self, after_seq: int, up_to_seq: int) -> Iterator[list[Chunk]]:
        chunks = self._log.scan(EVERYTHING, after_seq=after_seq)
        while page := list(islice(chunks, PAGE)):
            page = [chunk for chunk in page if (chunk.seq or 0) <= up_to_seq]
            if not page:
                return
            yield page

    def _write(self, engine: SearchEngine, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        engine.upsert(chunks, vectors)
        # Looked up after the writing: whoever forgets a chunk later drops it from the engine.
        stored = self._log.get([chunk.id for chunk in chunks])
        gone = [chunk.seq or 0 for chunk in chunks if chunk.id not in stored]
        if gone:
            engine.delete(gone)

    def _start(self, engine: SearchEngine, encoder: Encoder) -> EngineMark:
        """Prepares an engine without data; returns its mark, or that of whoever was faster."""
        mark = EngineMark(self._log_id, encoder.id, LogState())
        engine.prepare(mark, dimensions=encoder.dimensions)
        return engine.mark() or mark

    def check_belongs(self) -> None:
        """Raises if the engine has the chunks of another log."""
        self._check_log(self._engine.mark())

    def _check_log(self, mark: EngineMark | None) -> None:
        if mark is not None and mark.log_id != self._log_id:
            raise StoreCorruptError(
                f"{self._engine.location} is the index of another store than "
                f"{self._log.location}; give every store a collection of its own"
            )

    def _check_mark(self, mark: EngineMark | None) -> None:
        self._check_log(mark)
        if mark is not None and mark.encoder_id != self._encoder.id:
            raise EncoderMismatchError(
                stored=mark.encoder_id, given=self._encoder.id, location=self._log.location
            )


def _moved(engine: SearchEngine, mark: EngineMark, state: LogState) -> EngineMark:
    moved = mark._replace(state=state)
    engine.set_mark(moved, replacing=mark)
    return moved


class _Search:
    """One search in one state of the log."""

    def __init__(
        self, engine: SearchEngine, log: ChunkLog, where: ChunkFilter, *, up_to_seq: int
    ) -> None:
        self._engine = engine
        self._where = where
        self._up_to_seq = up_to_seq
        # Only the log knows the metadata, which may change.
        self._seqs = log.seqs(where).tolist() if where.metadata else None

    def _ask(
        self, queries: Vectors, k: int, after: EngineHit | None = None
    ) -> list[list[EngineHit]]:
        if self._seqs == []:
            return [[] for _ in queries]
        return self._engine.search(
            queries,
            k=k,
            where=replace(self._where, metadata=()),
            up_to_seq=self._up_to_seq,
            seqs=self._seqs,
            newer_than=after,
        )

    def best(self, queries: Vectors, k: int, *, room: int) -> list[list[EngineHit]]:
        """Returns the k most similar chunks and some more, equal scores newest first."""
        limit = k + room
        while True:
            found = self._ask(queries, limit)
            # An engine may cut equal scores anywhere, but the newest of them are wanted.
            cut = any(len(h) == limit and h[k - 1].score - h[-1].score < ROUNDING for h in found)
            if not cut or limit >= MOST_TIES:
                return [_in_order(hits) for hits in found]
            limit = min(limit * 8, MOST_TIES)

    def frontier(self, query: Vectors, hits: list[EngineHit], depth: int) -> list[EngineHit]:
        """Returns the chunks for which fewer than `depth` newer ones are as similar, newest first.

        Whatever is older than the newest `depth` hits, and no hit itself, is less similar than all
        of them. So the next page is asked for among newer chunks, and so on: about
        log N / log(page / depth) requests.
        """
        found = {hit.id: hit for hit in hits}
        size = max(FRONTIER_PAGE, 8 * depth)
        page = hits
        while len(page) > depth:
            oldest = _newest_first(page)[depth - 1]
            page = self._ask(query, size, oldest)[0]
            found.update((hit.id, hit) for hit in page)
            if len(page) < size:
                break
        ordered = _newest_first(list(found.values()))
        if not ordered:
            return []
        scores = np.array([hit.score for hit in ordered], dtype=np.float32)
        return [ordered[n] for n in frontier_positions(scores, depth)]


def _newest_first(hits: Sequence[EngineHit]) -> list[EngineHit]:
    return sorted(hits, key=lambda hit: (hit.at, hit.seq), reverse=True)


def _in_order(hits: list[EngineHit]) -> list[EngineHit]:
    return [hits[n] for n in ranked([hit.score for hit in hits], [hit.seq for hit in hits])]
