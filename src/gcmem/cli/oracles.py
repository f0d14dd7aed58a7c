"""The oracles and readers that the command line can name."""

from __future__ import annotations

import os

from gcmem.answer import LLMReader
from gcmem.conflict import LLMOracle, NLIClassifier, PairwiseOracle
from gcmem.conflict.llm import Style
from gcmem.defaults import default_encoder, default_oracle, default_reader
from gcmem.errors import InvalidInputError
from gcmem.llm import OpenAIChat
from gcmem.protocols import ConflictOracle, Reader, VerdictCache

STYLES: dict[str, Style] = {"llm": "listwise", "llm-pairwise": "pairwise"}


def oracle_named(
    name: str, *, base_url: str | None, cache: VerdictCache | None = None
) -> ConflictOracle:
    """Returns the oracle: local, nli:FOLDER, llm:MODEL (the whole set at once) or llm-pairwise."""
    kind, _, rest = name.partition(":")
    if kind == "local" and not rest:
        return default_oracle(cache)
    if kind == "nli" and rest:
        return PairwiseOracle(NLIClassifier(rest), cache=cache)
    if kind in STYLES and rest:
        return LLMOracle(_chat(rest, base_url), style=STYLES[kind])
    raise InvalidInputError(
        f"--oracle {name}: write local, nli:FOLDER, llm:MODEL or llm-pairwise:MODEL"
    )


def reader_named(name: str, *, base_url: str | None) -> Reader:
    """Returns the reader: local or llm:MODEL."""
    kind, _, rest = name.partition(":")
    if kind == "local" and not rest:
        return default_reader(default_encoder())
    if kind == "llm" and rest:
        return LLMReader(_chat(rest, base_url))
    raise InvalidInputError(f"--reader {name}: write local or llm:MODEL")


def _chat(model: str, base_url: str | None) -> OpenAIChat:
    return OpenAIChat(model=model, base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY"))
