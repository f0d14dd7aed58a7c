"""The oracles that the command line can name."""

from __future__ import annotations

import os

from gcmem.conflict import LLMOracle, NLIClassifier, PairwiseOracle
from gcmem.conflict.llm import Style
from gcmem.defaults import default_oracle
from gcmem.errors import InvalidInputError
from gcmem.llm import OpenAIChat
from gcmem.protocols import ConflictOracle

STYLES: dict[str, Style] = {"llm": "listwise", "llm-pairwise": "pairwise"}


def oracle_named(name: str, *, base_url: str | None) -> ConflictOracle:
    """Returns the oracle: local, nli:FOLDER, llm:MODEL (the whole set at once) or llm-pairwise."""
    kind, _, rest = name.partition(":")
    if kind == "local" and not rest:
        return default_oracle()
    if kind == "nli" and rest:
        return PairwiseOracle(NLIClassifier(rest))
    if kind in STYLES and rest:
        key = os.environ.get("OPENAI_API_KEY")
        chat = OpenAIChat(model=rest, base_url=base_url, api_key=key)
        return LLMOracle(chat, style=STYLES[kind])
    raise InvalidInputError(
        f"--oracle {name}: write local, nli:FOLDER, llm:MODEL or llm-pairwise:MODEL"
    )
