"""The oracles and readers that the command line can name."""

from __future__ import annotations

import os
from functools import lru_cache

from gcmem.answer import LLMReader
from gcmem.defaults import default_encoder, default_oracle, default_reader
from gcmem.errors import InvalidInputError
from gcmem.judge import LLMOracle, NLIClassifier, PairwiseOracle
from gcmem.judge.llm import Style
from gcmem.llm import OpenAIChat
from gcmem.protocols import ConflictOracle, Reader, VerdictCache

STYLES: dict[str, Style] = {"llm": "listwise", "llm-pairwise": "pairwise"}
ANSWER_TOKENS, LIST_TOKENS = 512, 2048
"""Room for an answer, and for a list of conflicts: up to about 25 tokens a chunk."""


def oracle_named(
    name: str, *, base_url: str | None, cache: VerdictCache | None = None
) -> ConflictOracle:
    """Returns the oracle: local, nli:FOLDER, llm:MODEL (the whole set at once) or llm-pairwise."""
    check_oracle(name)
    kind, _, rest = name.partition(":")
    if kind == "local":
        return default_oracle(cache)
    if kind == "nli":
        return PairwiseOracle(_nli(rest), cache=cache)
    return LLMOracle(_chat(rest, base_url, max_tokens=LIST_TOKENS), style=STYLES[kind])


def check_oracle(name: str) -> None:
    """Raises an error where this is no name of an oracle, or names a folder without one."""
    kind, _, rest = name.partition(":")
    if not (kind == "local" and not rest) and not (kind in ("nli", *STYLES) and rest):
        raise InvalidInputError(
            f"--oracle {name}: write local, nli:FOLDER, llm:MODEL or llm-pairwise:MODEL"
        )
    if kind == "nli":
        _nli(rest)


def reader_named(name: str, *, base_url: str | None) -> Reader:
    """Returns the reader: local or llm:MODEL."""
    kind, _, rest = name.partition(":")
    if kind == "local" and not rest:
        return default_reader(default_encoder())
    if kind == "llm" and rest:
        return LLMReader(_chat(rest, base_url, max_tokens=ANSWER_TOKENS))
    raise InvalidInputError(f"--reader {name}: write local or llm:MODEL")


def shortfall(oracle: ConflictOracle) -> str | None:
    """Says what a language model has left unjudged in this command, if anything."""
    if not isinstance(oracle, LLMOracle):
        return None
    usage = oracle.total_usage
    if not usage.malformed and not usage.unjudged:
        return None
    return (
        f"{oracle.id}: {usage.malformed} replies or entries could not be read and count as no "
        f"conflict, {usage.unjudged} pairs were not asked about"
    )


@lru_cache(maxsize=1)
def _nli(folder: str) -> NLIClassifier:
    return NLIClassifier(folder)


def _chat(model: str, base_url: str | None, *, max_tokens: int) -> OpenAIChat:
    key = os.environ.get("OPENAI_API_KEY")
    return OpenAIChat(model=model, base_url=base_url, api_key=key, max_tokens=max_tokens)
