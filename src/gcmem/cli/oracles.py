"""The oracles and readers that the command line can name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from gcmem.answer import LLMReader
from gcmem.cli.output import warn
from gcmem.defaults import default_oracle, default_reader
from gcmem.errors import InvalidInputError
from gcmem.judge import LLMOracle, NLIClassifier, PairwiseOracle
from gcmem.judge.fitness import RECORD, SHIPPED_RECORD, load_fitness
from gcmem.judge.llm import Style
from gcmem.llm import OpenAIChat
from gcmem.protocols import ConflictOracle, Encoder, Reader, ScoreCache
from gcmem.types import Fitness

STYLES: dict[str, Style] = {"llm": "listwise", "llm-pairwise": "pairwise"}
ANSWER_TOKENS, LIST_TOKENS = 512, 2048
"""Most tokens of an answer, and of a list of conflicts (about 25 tokens per chunk)."""


def oracle_named(
    name: str, *, base_url: str | None, cache: ScoreCache | None = None
) -> ConflictOracle:
    """Returns the oracle: local, nli:FOLDER, llm:MODEL (whole sets) or llm-pairwise:MODEL."""
    check_oracle(name)
    kind, _, rest = name.partition(":")
    if kind == "local":
        return default_oracle(cache)
    if kind == "nli":
        return PairwiseOracle(_nli(rest), cache=cache)
    return LLMOracle(_chat(rest, base_url, max_tokens=LIST_TOKENS), style=STYLES[kind])


def check_oracle(name: str) -> None:
    """Raises an error if the name is not an oracle's, or its folder holds no model."""
    kind, _, rest = name.partition(":")
    if not (kind == "local" and not rest) and not (kind in ("nli", *STYLES) and rest):
        raise InvalidInputError(
            f"--oracle {name}: write local, nli:FOLDER, llm:MODEL or llm-pairwise:MODEL"
        )
    if kind == "nli":
        _nli(rest)


def reader_named(name: str, *, base_url: str | None, encoder: Encoder) -> Reader:
    """Returns the reader: local, which compares texts by `encoder`, or llm:MODEL."""
    kind, _, rest = name.partition(":")
    if kind == "local" and not rest:
        return default_reader(encoder)
    if kind == "llm" and rest:
        return LLMReader(_chat(rest, base_url, max_tokens=ANSWER_TOKENS))
    raise InvalidInputError(f"--reader {name}: write local or llm:MODEL")


def skipped_warning(oracle: ConflictOracle) -> str | None:
    """Returns a warning if the model skipped pairs or replied unreadably."""
    if not isinstance(oracle, LLMOracle):
        return None
    usage = oracle.total_usage
    if not usage.malformed and not usage.unjudged:
        return None
    return (
        f"{oracle.id}: {usage.malformed} replies or entries could not be read and count as no "
        f"conflict, {usage.unjudged} pairs were skipped"
    )


def warn_of_recorded_fitness(oracle: ConflictOracle, recorded: Mapping[str, Fitness]) -> None:
    """Says on stderr if the oracle's class comes from the record in the home folder."""
    if oracle.id in recorded and oracle.id not in load_fitness(SHIPPED_RECORD):
        warn(f"conflict model {oracle.id} is {recorded[oracle.id]}, by {RECORD}")


@lru_cache(maxsize=1)
def _nli(folder: str) -> NLIClassifier:
    return NLIClassifier(folder)


def _chat(model: str, base_url: str | None, *, max_tokens: int) -> OpenAIChat:
    key = os.environ.get("OPENAI_API_KEY")
    return OpenAIChat(model=model, base_url=base_url, api_key=key, max_tokens=max_tokens)
