"""Answers a question by several paths over one candidate set, and orders what a search shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

from gcmem.answer import prompt_of
from gcmem.errors import InvalidInputError
from gcmem.protocols import Reader
from gcmem.resolve import Resolver, plain_set, standard, timestamp_rerank
from gcmem.stopwatch import Stopwatch
from gcmem.types import (
    Answer,
    AnswerPath,
    Candidate,
    CandidateSet,
    Mode,
    PromptMode,
    Resolution,
    Strategy,
    Timings,
    check_choice,
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
    resolver: Resolver,
    reader: Reader,
    k: int,
    paths: Sequence[AnswerPath],
    mode: PromptMode,
    strategy: Strategy,
    watch: Stopwatch,
) -> tuple[Answer, ...]:
    """Returns one answer per path; the reader sees the k best chunks that each path keeps."""
    resolvers: dict[AnswerPath, Callable[[], Resolution]] = {
        "standard": lambda: standard(candidates),
        "timestamp": lambda: timestamp_rerank(plain_set(candidates, k=k, strategy=strategy)),
        "gcmem": lambda: resolver.resolve(candidates, watch=watch),
    }
    found = [resolvers[path]() for path in paths]
    prompts = [prompt_of(candidates, resolution, k=k, mode=mode) for resolution in found]
    with watch.timing("read_ms"):
        readings = reader.read(prompts)
    return tuple(
        Answer(
            text=reading.text,
            choice=reading.choice,
            path=path,
            # As in a search, `kept` is what is shown: here, to the reader.
            resolution=replace(resolution, kept=resolution.kept[:k]),
            timings=Timings(**watch.spent_ms),
            tokens=reading.tokens,
            source=reading.source,
        )
        for path, resolution, reading in zip(paths, found, readings, strict=True)
    )


def shown(candidates: CandidateSet, resolution: Resolution, mode: Mode) -> tuple[Candidate, ...]:
    """Returns the candidates in the order that `mode` shows."""
    if mode == "annotate":
        return candidates.items
    if mode == "drop":
        return resolution.kept
    # With an unqualified oracle, shadows are among the kept too: show nothing twice.
    return tuple(dict.fromkeys((*resolution.kept, *(s.candidate for s in resolution.shadows))))
