"""`Memory`, the façade: connects the stages and decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, get_args

from gcmem import deadline
from gcmem.asking import answers, check_paths, shown
from gcmem.calls import ScopedCache, current_call, one_call
from gcmem.clocks import now_in
from gcmem.defaults import default_encoder, default_reader, make_resolver
from gcmem.encode import CachedEncoder
from gcmem.errors import EncoderMismatchError, InvalidInputError
from gcmem.filters import check_k, check_limit, check_options, make_filter
from gcmem.indexed_text import dense_texts
from gcmem.ingest import Message, as_turns, chunks_of
from gcmem.ingest.turns import check_text
from gcmem.judge.ahead import Linked, link
from gcmem.protocols import AnswerClassifier, ConflictOracle, Encoder, Progress, Reader, Store
from gcmem.retrieve import rerank, retrieve
from gcmem.settings import Settings
from gcmem.stopwatch import Stopwatch
from gcmem.store import open_embedded
from gcmem.store.urls import check_location, open_store
from gcmem.stored_chunks import StoredChunks
from gcmem.twins import in_thread, write_in_thread
from gcmem.types import (
    TRUSTED,
    Answer,
    AnswerPath,
    CandidateSet,
    Chunk,
    ChunkFilter,
    Fitness,
    Mode,
    PromptMode,
    Resolution,
    Scope,
    SearchResult,
    Timings,
    Turn,
    check_choice,
    utc,
)

DEFAULT_PATH = Path("~/.gcmem/memory.db")


class Memory(StoredChunks):
    """Memory for agents that knows which facts are still true.

    Everything added is kept. A search leaves out chunks that a newer chunk contradicts, and names
    both. By default it works offline, in the embedded store at `~/.gcmem/memory.db`.
    Safe to use from several threads, and as a context manager.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        store: Store | None = None,
        encoder: Encoder | None = None,
        oracle: ConflictOracle | None = None,
        reader: Reader | None = None,
        reranker: AnswerClassifier | None = None,
        settings: Settings | None = None,
        qualification: Mapping[str, Fitness] | None = None,
        require_qualified: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Opens or creates the store at `path` (":memory:" is not saved), or uses `store`.

        An oracle that was measured as unfit, or never measured, only annotates: stale chunks are
        reported in `shadows`, but stay in the results. `qualification` gives the measured fitness
        by oracle id (see `gcmem.judge.fitness`); the shipped oracle's is built in. With
        `require_qualified=False` any oracle removes. A `reranker` reads the 30 best candidates of
        every search once more, which finds a little more and takes a second or two.
        """
        if path is not None and store is not None:
            raise InvalidInputError("pass either path or store, not both")
        check_location(DEFAULT_PATH if path is None else path)
        if path is not None and "://" in str(path):
            raise InvalidInputError(f"{path!r} is a URL: open it with Memory.from_url")
        if settings is not None and not isinstance(settings, Settings):
            raise InvalidInputError(f"settings={settings!r}: pass gcmem.Settings(...)")
        self.settings = settings or Settings()
        self.encoder = default_encoder() if encoder is None else CachedEncoder.around(encoder)
        self.reader = reader or default_reader(self.encoder)
        self.reranker = reranker
        self._clock = clock
        self._cache = ScopedCache()
        self.store = store or open_embedded(
            DEFAULT_PATH if path is None else path,
            encoder=self.encoder,
            stm_size=self.settings.stm_size,
        )
        self.qualification = qualification or {}
        self.resolver = make_resolver(
            oracle,
            settings=self.settings,
            qualification=self.qualification,
            require_qualified=require_qualified,
            scores=self.store.scores,
            ledger=self.store.ledger,
        )
        self.oracle = self.resolver.oracle
        stored = self.store.index.encoder_id
        if stored is not None and stored != self.encoder.id:
            location = self.store.log.location
            self.close()
            raise EncoderMismatchError(stored=stored, given=self.encoder.id, location=location)

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        stm: str | None = None,
        encoder: Encoder | None = None,
        oracle: ConflictOracle | None = None,
        reader: Reader | None = None,
        reranker: AnswerClassifier | None = None,
        settings: Settings | None = None,
        qualification: Mapping[str, Fitness] | None = None,
        require_qualified: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> Self:
        """Opens the store at a URL: a path, sqlite:/// or postgresql://, with `?index=` and a
        qdrant:// URL at its end if the vectors are kept in Qdrant.

        `stm` is the redis:// URL of the recency buffer; by default recent chunks come from the log.
        """
        used = default_encoder() if encoder is None else CachedEncoder.around(encoder)
        stm_size = (settings or Settings()).stm_size
        store = open_store(url, encoder=used, stm_size=stm_size, stm=stm)
        try:
            return cls(
                store=store, encoder=encoder, oracle=oracle, reader=reader, reranker=reranker,
                settings=settings, qualification=qualification,
                require_qualified=require_qualified, clock=clock,
            )  # fmt: skip
        except BaseException:
            store.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def removes(self) -> bool:
        """Whether the oracle may remove stale chunks; otherwise it only annotates."""
        return self.resolver.policy.removes

    def close(self) -> None:
        """Closes the store."""
        self.store.close()

    def add(
        self,
        messages: Message | Sequence[Message],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        at: datetime | None = None,
        speaker: str | None = None,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        trust: int = TRUSTED,
        only_new: bool = False,
    ) -> tuple[Chunk, ...]:
        """Stores messages and returns their chunks, which are on disk by then.

        Takes a string, a Turn, a {"role", "content"} dict, or a list of them; all are stored or
        none. `at` is the event time of messages without one, by default now; a time in the future
        is stored as now (see `Settings.max_future`). `trust` says how much the source is trusted, 0
        for not at all (see `Settings.respect_trust`). `only_new` skips chunks whose id is already
        in the store, which is useful for turns with ids.
        """
        scope = Scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        turns = as_turns(messages, at=at, speaker=speaker, session=session, metadata=metadata)
        now = self._now(turns, scope)
        chunks = chunks_of(
            turns,
            scope=scope,
            now=now,
            settings=self.settings,
            count_tokens=self.encoder.count_tokens,
            trust=trust,
        )
        if only_new:
            known = self.store.log.get([chunk.id for chunk in chunks])
            chunks = tuple(chunk for chunk in chunks if chunk.id not in known)
        if not chunks:
            return ()
        vectors = self.encoder.encode(dense_texts(chunks, version=self.store.index.text_version))
        deadline.check()  # the last check: a write that has begun must finish
        # Read the clock again: the chunk was not known before encoding ended.
        recorded_at = max(now, utc(self._clock(), name="clock()"))
        chunks = tuple(replace(chunk, recorded_at=recorded_at) for chunk in chunks)
        return self.store.append(chunks, vectors, encoder_id=self.encoder.id)

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        k: int = 10,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        filters: Mapping[str, Any] | None = None,
        mode: Mode = "drop",
        options: Sequence[str] = (),
    ) -> SearchResult:
        """Finds the chunks that answer `query` and are still true, at most k of them.

        `as_of` asks what was true then, `known_at` what the memory knew then. `mode` decides
        whether shadows are dropped, moved to the end, or left in place and annotated.
        """
        check_choice(mode, name="mode", allowed=get_args(Mode))
        where = make_filter(user_id, agent_id, run_id, as_of, known_at, filters)
        stopwatch = Stopwatch()
        with one_call(self._cache, where.scope):
            candidates = self._candidates(query, k=k, where=where, options=options, watch=stopwatch)
            resolution = self.resolver.resolve(candidates, watch=stopwatch)
        return SearchResult(
            query=candidates.query,
            as_of=candidates.as_of,
            mode=mode,
            candidates=candidates,
            kept=resolution.kept[:k],
            shadows=resolution.shadows,
            undecided=resolution.undecided,
            ranked=shown(candidates, resolution, mode)[:k],
            timings=Timings(**stopwatch.spent_ms),
            skewed=resolution.skewed,
            outranked=resolution.outranked,
        )

    def ask(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        options: Sequence[str] = (),
        k: int = 10,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        filters: Mapping[str, Any] | None = None,
        path: AnswerPath = "gcmem",
        mode: PromptMode = "allow-unclear",
    ) -> Answer:
        """Answers a question from memory, with one of `options` if given.

        `path` decides what the reader sees: every chunk ("standard"), every chunk newest first
        ("timestamp"), or the chunks that are still true ("gcmem").
        """
        return self.ask_paths(
            question, user_id=user_id, agent_id=agent_id, run_id=run_id, options=options, k=k,
            as_of=as_of, known_at=known_at, filters=filters, paths=(path,), mode=mode,
        )[0]  # fmt: skip

    def ask_paths(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        options: Sequence[str] = (),
        k: int = 10,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        filters: Mapping[str, Any] | None = None,
        paths: Sequence[AnswerPath] = get_args(AnswerPath),
        mode: PromptMode = "allow-unclear",
    ) -> tuple[Answer, ...]:
        """Answers by several paths over the same candidate set, for comparison.

        The reader sees the k best chunks that each path keeps.
        """
        check_paths(paths, mode=mode)
        where = make_filter(user_id, agent_id, run_id, as_of, known_at, filters)
        watch = Stopwatch()
        with one_call(self._cache, where.scope):
            candidates = self._candidates(question, k=k, where=where, options=options, watch=watch)
            return answers(
                candidates,
                resolver=self.resolver,
                reader=self.reader,
                k=k,
                paths=paths,
                mode=mode,
                strategy=self.settings.strategy,
                watch=watch,
            )

    def link(self, *, limit: int | None = None, progress: Progress | None = None) -> Linked:
        """Judges the chunks added since the last call; returns how many, and how many conflicts.

        Searches use the saved conflicts, but work without them. `limit` is the maximum number of
        chunks per call; after an interruption, the next call continues.
        """
        check_limit(limit)
        if progress is not None and not callable(progress):
            raise InvalidInputError(f"progress={progress!r}: pass a function of (done, total)")
        return link(
            self.store,
            encoder=self.encoder,
            resolver=self.resolver,
            limit=limit,
            progress=progress,
        )

    def candidates(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        k: int = 10,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        filters: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
    ) -> CandidateSet:
        """Retrieves without judging: returns the candidate set that `search` and `ask` resolve."""
        where = make_filter(user_id, agent_id, run_id, as_of, known_at, filters)
        return self._candidates(query, k=k, where=where, options=options, watch=Stopwatch())

    def resolve(self, candidates: CandidateSet) -> Resolution:
        """Finds the chunks of a set that a newer chunk contradicts, by the rules of `search`."""
        if not isinstance(candidates, CandidateSet):
            raise InvalidInputError(
                f"candidates={candidates!r}: pass a CandidateSet, or documents to gcmem.resolve"
            )
        return self.resolver.resolve(candidates)

    aadd = write_in_thread(add)
    asearch = in_thread(search)
    aask = in_thread(ask)

    def _now(self, turns: Sequence[Turn], scope: Scope) -> datetime:
        clock_now = utc(self._clock(), name="clock()")
        if all(turn.at is not None and turn.at <= clock_now for turn in turns):
            return clock_now  # every time is known, so there is no need to read the log
        return now_in(self.store.log, scope, clock_now=clock_now, max_skew=self.settings.max_skew)

    def _candidates(
        self,
        query: str,
        *,
        k: int,
        where: ChunkFilter,
        options: Sequence[str],
        watch: Stopwatch,
    ) -> CandidateSet:
        check_k(k)
        check_options(options)
        query = check_text(query, name="the question").strip()
        with watch.timing("encode_ms"):
            vectors = current_call().vectors(
                [("question", query)], [query], self.encoder, queries=True
            )
        with watch.timing("retrieve_ms"):
            found = retrieve(
                self.store,
                query=query,
                queries=vectors,
                k=k,
                where=where,
                options=options,
                strategy=self.settings.strategy,
                frontier=self.settings.frontier,
                pool=k * self.settings.overfetch,
                oracle=self.oracle.id,
                lexical_weight=self.settings.lexical_weight,
            )
            return (
                found if self.reranker is None else rerank(found, self.reranker, log=self.store.log)
            )
