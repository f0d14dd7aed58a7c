"""Scores an outcome: the answer, the removed chunks and the kept chunks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gcmem.bench.data.instances import Instance
from gcmem.bench.run.outcomes import Outcome
from gcmem.types import CandidateSet, Reading, Resolution


def scored(outcome: Outcome, instance: Instance, reading: Reading) -> Outcome:
    """Returns the outcome with its answer; free text is correct if it contains an accepted one."""
    unclear = reading.choice is None and reading.text.strip(". ").casefold() == "unclear"
    if instance.options:
        correct = reading.choice == instance.answer
        stale = reading.choice is not None and not correct
    else:
        correct = any(contains_answer(reading.text, answer) for answer in instance.answers)
        old = {turn.text for turn in instance.of_kind("old")}
        stale = not correct and any(contains_answer(text, reading.text) for text in old)
    return replace(
        outcome,
        choice=reading.choice,
        text=reading.text,
        correct=correct,
        stale=stale,
        unclear=unclear,
    )


def contains_answer(text: str, answer: str) -> bool:
    """Returns whether a text contains an answer's words, ignoring case and punctuation."""
    wanted = _words(answer)
    return bool(wanted) and f" {wanted} " in f" {_words(text)} "


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def measured(
    instance: Instance,
    candidates: CandidateSet,
    resolution: Resolution,
    *,
    turn_of: Mapping[str, str],
    ranks_only: bool,
) -> dict[str, Any]:
    """Returns the measures of retrieval and, for `gcmem`, of removal.

    Labels belong to turns, and `turn_of` gives the turn of a chunk. A turn is found if one of its
    chunks is a candidate, and removed if none of them is kept. κ is scored by the removed turns:
    one witness is enough, so an oracle need not find every pair.
    """
    ids = {turn_of[item.chunk.id] for item in candidates}
    by_kind = {
        kind: [turn.id for turn in instance.turns if turn.kind == kind]
        for kind in ("old", "new", "distractor")
    }
    found: dict[str, Any] = {
        f"recall_{kind}": len(ids.intersection(own)) / len(own) if own else None
        for kind, own in by_kind.items()
    }
    if ranks_only:
        return found
    kept = {turn_of[item.chunk.id] for item in resolution.kept}
    gone = {turn_of[shadow.candidate.chunk.id] for shadow in resolution.shadows} - kept
    stale = (
        {a for a, b in instance.conflicts if a in ids and b in ids} if instance.ordered else set()
    )
    live = ids - {older for older, _ in instance.conflicts} if instance.ordered else ids
    return found | {
        "shadows": len(resolution.shadows),
        "stale_removed": len(gone & stale) / len(stale) if stale else None,
        "keep_rate": len(live - gone) / len(live) if live else None,
        "true_positives": len(gone & stale),
        "false_positives": len(gone & live),
        "false_negatives": len(stale - gone),
    }
