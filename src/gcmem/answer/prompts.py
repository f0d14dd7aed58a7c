"""The prompts for language models, in both prompt modes."""

from __future__ import annotations

from typing import Any

from gcmem.quoting import HOW_QUOTED, memory_tag, quoted
from gcmem.types import CandidateSet, Chunk, Prompt, PromptMode, Resolution

UNCLEAR = "UNCLEAR"

SYSTEM = f"You answer a question from a list of memories. {HOW_QUOTED}"


def prompt_of(
    candidates: CandidateSet,
    resolution: Resolution,
    *,
    k: int | None,
    mode: PromptMode,
    notes: tuple[str, ...] = (),
) -> Prompt:
    """Returns the reader's prompt: the question and the k best chunks that are kept (None: all).

    `search` returns the same k chunks, so an answer uses nothing that a search would not show.
    `notes` says of each chunk whether it is outdated or may be.
    """
    return Prompt(
        question=candidates.query,
        chunks=tuple(item.chunk for item in resolution.kept[:k]),
        options=candidates.options,
        mode=mode,
        as_of=candidates.as_of,
        notes=notes,
    )


def render(prompt: Prompt) -> str:
    """Returns the user message: the memories in order, the question, how to answer."""
    notes = prompt.notes or ("",) * len(prompt.chunks)
    memories = quoted(map(_tag, prompt.chunks, notes))
    lines = [memories, "", f"Question: {prompt.question}"]
    if prompt.as_of is not None:
        lines.append(f"Answer as of {prompt.as_of.isoformat()}.")
    if prompt.options:
        lines.append("Options: " + " | ".join(prompt.options))
        lines.append("Choose exactly one of the options.")
    else:
        lines.append("Answer in a few words.")
    if prompt.mode == "allow-unclear":
        lines.append(f"If the memories do not settle it, answer {UNCLEAR}.")
    return "\n".join(lines)


def _tag(chunk: Chunk, note: str) -> str:
    return memory_tag(chunk, note=note) if note else memory_tag(chunk)


def schema(prompt: Prompt) -> dict[str, Any]:
    """Returns the JSON schema of the reply; with options, it allows nothing else."""
    unclear = [UNCLEAR] if prompt.mode == "allow-unclear" else []
    answer: dict[str, Any] = {"type": "string"}
    if prompt.options:
        answer["enum"] = [*prompt.options, *unclear]
    return {
        "type": "object",
        "properties": {"answer": answer},
        "required": ["answer"],
        "additionalProperties": False,
    }
