"""What a memory does with questions: finding what answers them, and answering by several paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, get_args

from gcmem.answer import notes_of, prompt_of
from gcmem.calls import ScopedCache, current_call, one_call
from gcmem.errors import InvalidInputError
from gcmem.filters import check_k, check_options, make_filter
from gcmem.ingest.turns import check_text
from gcmem.judge.ahead import Judging
from gcmem.protocols import AnswerClassifier, Encoder, Reader, Store
from gcmem.resolve import LedgerResolver, Resolver, plain_set, standard, timestamp_rerank
from gcmem.retrieve import rerank, retrieve
from gcmem.settings import Settings
from gcmem.stopwatch import Stopwatch
from gcmem.twins import in_thread
from gcmem.types import (
    Answer,
    AnswerPath,
    Candidate,
    CandidateSet,
    ChunkFilter,
    Mode,
    PromptMode,
    Resolution,
    SearchResult,
    Strategy,
    Timings,
    View,
    check_choice,
)
from gcmem.views import seen, unremoved, view_of


class Asking:
    """Finds the chunks that answer a question, and answers it from them."""

    store: Store
    settings: Settings
    encoder: Encoder
    reader: Reader
    reranker: AnswerClassifier | None
    resolver: Resolver | LedgerResolver
    read_resolver: Resolver
    _judging: Judging | None
    _cache: ScopedCache

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
        view: View = "auto",
    ) -> SearchResult:
        """Finds the chunks that answer `query` and are still true, at most k of them.

        `as_of` asks what was true then, `known_at` what the memory knew then. `mode` decides
        whether shadows are dropped, moved to the end, or left in place and annotated. With the
        `view` "past" outdated chunks are returned too, and with "changes" in the order of time;
        "auto" chooses by the words of the question (see `gcmem.views`).
        """
        check_choice(mode, name="mode", allowed=get_args(Mode))
        check_choice(view, name="view", allowed=get_args(View))
        where = make_filter(user_id, agent_id, run_id, as_of, known_at, filters)
        stopwatch = Stopwatch()
        with one_call(self._cache, where.scope):
            candidates = self._candidates(query, k=k, where=where, options=options, watch=stopwatch)
            resolution = self._resolver(options).resolve(candidates, watch=stopwatch)
        view = view_of(candidates.query, view)
        return SearchResult(
            query=candidates.query,
            as_of=candidates.as_of,
            mode=mode,
            candidates=candidates,
            kept=seen(candidates, resolution, view=view, k=k),
            shadows=resolution.shadows,
            undecided=resolution.undecided,
            ranked=shown(candidates, resolution, mode=mode, view=view, k=k),
            timings=Timings(**stopwatch.spent_ms),
            skewed=resolution.skewed,
            outranked=resolution.outranked,
            doubtful=resolution.doubtful,
            unjudged=resolution.unjudged,
            view=view,
            unremoved=unremoved(resolution),
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
        view: View = "auto",
    ) -> Answer:
        """Answers a question from memory, with one of `options` if given.

        `path` decides what the reader sees: every chunk ("standard"), every chunk newest first
        ("timestamp"), or the chunks that are still true ("gcmem"). With the `view` "past" or
        "changes" the last of them also reads outdated chunks, as `search` returns them.
        """
        return self.ask_paths(
            question, user_id=user_id, agent_id=agent_id, run_id=run_id, options=options, k=k,
            as_of=as_of, known_at=known_at, filters=filters, paths=(path,), mode=mode, view=view,
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
        view: View = "auto",
    ) -> tuple[Answer, ...]:
        """Answers by several paths over the same candidate set, for comparison.

        The reader sees the k best chunks that each path keeps.
        """
        check_paths(paths, mode=mode)
        check_choice(view, name="view", allowed=get_args(View))
        where = make_filter(user_id, agent_id, run_id, as_of, known_at, filters)
        watch = Stopwatch()
        with one_call(self._cache, where.scope):
            candidates = self._candidates(question, k=k, where=where, options=options, watch=watch)
            return answers(
                candidates,
                resolver=self._resolver(options),
                reader=self.reader,
                k=k,
                paths=paths,
                mode=mode,
                view=view_of(candidates.query, view),
                strategy=self.settings.strategy,
                watch=watch,
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
        return self._resolver(candidates.options).resolve(candidates)

    def _resolver(self, options: Sequence[str]) -> Resolver | LedgerResolver:
        """Returns what resolves a question; one with answer options is judged when it is asked."""
        return self.read_resolver if options else self.resolver

    asearch = in_thread(search)
    aask = in_thread(ask)

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
                judge=None if self._judging is None else self._judging.id,
                lexical_weight=self.settings.lexical_weight,
            )
            return (
                found if self.reranker is None else rerank(found, self.reranker, log=self.store.log)
            )


def check_paths(paths: Sequence[AnswerPath], *, mode: PromptMode) -> None:
    """Raises unless the paths and the mode are known, and each path is there once."""
    check_choice(mode, name="mode", allowed=get_args(PromptMode))
    if not isinstance(paths, (list, tuple)):
        raise InvalidInputError(f"paths={paths!r}: pass a list of paths")
    for path in paths:
        check_choice(path, name="path", allowed=get_args(AnswerPath))
    if len(set(paths)) != len(paths):
        raise InvalidInputError(f"paths={paths!r}: pass each path once")


def answers(
    candidates: CandidateSet,
    *,
    resolver: Resolver | LedgerResolver,
    reader: Reader,
    k: int,
    paths: Sequence[AnswerPath],
    mode: PromptMode,
    view: View,
    strategy: Strategy,
    watch: Stopwatch,
) -> tuple[Answer, ...]:
    """Returns one answer per path; the reader sees the k best chunks that each path keeps."""
    resolvers: dict[AnswerPath, Callable[[], Resolution]] = {
        "standard": lambda: standard(candidates),
        "timestamp": lambda: timestamp_rerank(plain_set(candidates, k=k, strategy=strategy)),
        "gcmem": lambda: resolver.resolve(candidates, watch=watch),
    }
    found = []
    prompts = []
    for path in paths:
        resolution = resolvers[path]()
        kept = seen(candidates, resolution, view=view if path == "gcmem" else "current", k=k)
        notes: tuple[str, ...] = ()
        if strategy != "paper":  # the paper's prompts have none
            notes = notes_of(kept, resolution, unremoved=unremoved(resolution))
        # As in a search, `kept` is what is shown: here, to the reader.
        found.append(replace(resolution, kept=kept))
        prompts.append(prompt_of(candidates, found[-1], k=k, mode=mode, notes=notes))
    with watch.timing("read_ms"):
        readings = reader.read(prompts)
    return tuple(
        Answer(
            text=reading.text,
            choice=reading.choice,
            path=path,
            resolution=resolution,
            timings=Timings(**watch.spent_ms),
            tokens=reading.tokens,
            source=reading.source,
            view=view,
        )
        for path, resolution, reading in zip(paths, found, readings, strict=True)
    )


def shown(
    candidates: CandidateSet, resolution: Resolution, *, mode: Mode, view: View, k: int
) -> tuple[Candidate, ...]:
    """Returns at most k candidates, in the order that the view shows, or else the mode."""
    if view != "current" or mode == "drop":
        return seen(candidates, resolution, view=view, k=k)
    if mode == "annotate":
        return candidates.items[:k]
    # With an unqualified oracle, shadows are among the kept too: show nothing twice.
    both = dict.fromkeys((*resolution.kept, *(s.candidate for s in resolution.shadows)))
    return tuple(both)[:k]
