"""`Memory`, the façade: connects the stages and decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gcmem import deadline
from gcmem.asking import Asking
from gcmem.calls import ScopedCache
from gcmem.clocks import now_in
from gcmem.defaults import (
    default_encoder,
    default_reader,
    make_judging,
    make_ledger_resolver,
    make_resolver,
    open_fitting,
)
from gcmem.encode import CachedEncoder
from gcmem.errors import EncoderMismatchError, InvalidInputError
from gcmem.indexed_text import dense_texts
from gcmem.ingest import Message, as_turns, chunks_of
from gcmem.judge.background import BackgroundJudge
from gcmem.judge.fitness import may_remove
from gcmem.judged_chunks import JudgedChunks
from gcmem.protocols import (
    AnswerClassifier,
    ClaimJudge,
    ConflictOracle,
    Encoder,
    Reader,
    Store,
)
from gcmem.resolve import LedgerResolver, Resolver
from gcmem.settings import Settings
from gcmem.store import open_embedded
from gcmem.store.urls import check_location, open_store
from gcmem.twins import write_in_thread
from gcmem.types import TRUSTED, Chunk, Fitness, Scope, Turn, utc

DEFAULT_PATH = Path("~/.gcmem/memory.db")


class Memory(JudgedChunks, Asking):
    """Memory for agents that knows which facts are still true.

    Everything added is kept. New claims are judged in the background, and the verdicts are kept. A
    search leaves out what is outdated, and names the proof. By default it works offline, in the
    embedded store at `~/.gcmem/memory.db`.
    Safe to use from several threads, and as a context manager.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        store: Store | None = None,
        encoder: Encoder | None = None,
        judge: ClaimJudge | None = None,
        oracle: ConflictOracle | None = None,
        reader: Reader | None = None,
        reranker: AnswerClassifier | None = None,
        settings: Settings | None = None,
        qualification: Mapping[str, Fitness] | None = None,
        require_qualified: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Opens or creates the store at `path` (":memory:" is not saved), or uses `store`.

        `judge` judges new claims ahead of searches, by default the shipped model. With an `oracle`,
        or the strategy `paper`, searches ask the oracle about whole chunks instead, each time. One
        that was measured as unfit, or never measured, only annotates: stale chunks are reported in
        `shadows`, but stay in the results. `qualification` gives the measured fitness by id (see
        `gcmem.judge.fitness`); the shipped model's is built in. With `require_qualified=False` any
        of them removes. A `reranker` reads the 30 best candidates of every search once more, which
        finds a little more and takes a second or two.
        """
        if path is not None and store is not None:
            raise InvalidInputError("pass either path or store, not both")
        if judge is not None and oracle is not None:
            raise InvalidInputError("pass either judge or oracle, not both")
        check_location(DEFAULT_PATH if path is None else path)
        if path is not None and "://" in str(path):
            raise InvalidInputError(f"{path!r} is a URL: open it with Memory.from_url")
        if settings is not None and not isinstance(settings, Settings):
            raise InvalidInputError(f"settings={settings!r}: pass gcmem.Settings(...)")
        self.settings = settings or Settings()
        stm_size = self.settings.stm_size
        if store is None:
            file = DEFAULT_PATH if path is None else path
            self.store, self.encoder = open_fitting(
                lambda used: open_embedded(file, encoder=used, stm_size=stm_size), encoder
            )
        else:
            self.store = store
            self.encoder = default_encoder() if encoder is None else CachedEncoder.around(encoder)
        self.reader = reader or default_reader(self.encoder)
        self.reranker = reranker
        self._clock = clock
        self._cache = ScopedCache()
        self.qualification = qualification or {}
        stored = self.store.index.encoder_id
        if stored is not None and stored != self.encoder.id:
            location = self.store.log.location
            self.close()
            raise EncoderMismatchError(stored=stored, given=self.encoder.id, location=location)
        self._set_up_judging(judge, oracle, require_qualified=require_qualified)

    def _set_up_judging(
        self, judge: ClaimJudge | None, oracle: ConflictOracle | None, *, require_qualified: bool
    ) -> None:
        settings = self.settings
        self.read_resolver = make_resolver(
            oracle,
            settings=settings,
            qualification=self.qualification,
            require_qualified=require_qualified,
            scores=self.store.scores,
            ledger=self.store.ledger,
        )
        self.oracle = self.read_resolver.oracle
        self.resolver: Resolver | LedgerResolver = self.read_resolver
        self._judging = make_judging(
            self.store, encoder=self.encoder, settings=settings, clock=self._clock,
            judge=judge, oracle=oracle,
        )  # fmt: skip
        self._by_ledger = None
        if self._judging is None:
            return
        removes = self.read_resolver.policy.removes  # the shipped model is both judge and oracle
        if judge is not None:
            removes = not require_qualified or may_remove(judge, self.qualification)
        self._by_ledger = make_ledger_resolver(
            self.store, self._judging, encoder=self.encoder, settings=settings, removes=removes
        )
        if oracle is None and settings.strategy != "paper":
            self.resolver = self._by_ledger
            if settings.judge == "background":
                self._background = BackgroundJudge(self._judging)
                if self._judging.pending():
                    self._background.wake()

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        stm: str | None = None,
        encoder: Encoder | None = None,
        judge: ClaimJudge | None = None,
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
        stm_size = (settings or Settings()).stm_size
        store, used = open_fitting(
            lambda used: open_store(url, encoder=used, stm_size=stm_size, stm=stm), encoder
        )
        try:
            return cls(
                store=store, encoder=used, judge=judge, oracle=oracle, reader=reader,
                reranker=reranker, settings=settings, qualification=qualification,
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
        """Stops judging in the background, and closes the store; what waits is judged later."""
        if self._background is not None:
            self._background.stop()
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
        stored = self.store.append(chunks, vectors, encoder_id=self.encoder.id)
        if self._background is not None:
            self._background.wake()
        return stored

    aadd = write_in_thread(add)

    def _now(self, turns: Sequence[Turn], scope: Scope) -> datetime:
        clock_now = utc(self._clock(), name="clock()")
        if all(turn.at is not None and turn.at <= clock_now for turn in turns):
            return clock_now  # every time is known, so there is no need to read the log
        return now_in(self.store.log, scope, clock_now=clock_now, max_skew=self.settings.max_skew)
