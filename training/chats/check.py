"""Checks files of written conversations: shape, order of times, and that every quote is there.

    python -m training.chats.check training/chats/conversations/*.jsonl

One conversation a line:
`id`, `setting`, `turns` [{`speaker`, `at`, `text`}], `ends` [{`older`, `newer`, `kind`}], where
older and newer are {`turn`, `quote`}, `stays` [{`turn`, `quote`, `why`}], and `questions`
[{`question`, `view`, `evidence`, `stale`}], where evidence and stale are lists of turns. Turns are
numbered from 0. A quote is a piece of its turn's text, to the letter: the sentence or clause that
makes the claim.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

CHATS = Path(__file__).parent / "conversations"
KINDS = {"said", "implied", "behaviour", "number", "cancelled", "finished", "corrected"}
VIEWS = {"current", "past", "changes"}
LEAST_TURNS, MOST_TURNS = 12, 60


def faults(chat: dict[str, Any]) -> Iterator[str]:
    """Yields what is wrong with a conversation."""
    turns = chat["turns"]
    if not LEAST_TURNS <= len(turns) <= MOST_TURNS:
        yield f"{len(turns)} turns; {LEAST_TURNS} to {MOST_TURNS} are allowed"
    times = [datetime.fromisoformat(turn["at"]) for turn in turns]
    if any(time.tzinfo is None for time in times):
        yield "a time without a timezone"
    elif any(later < earlier for earlier, later in pairwise(times)):
        yield "times out of order"
    for turn in turns:
        if not turn["text"].strip() or not turn["speaker"].strip():
            yield "an empty turn or speaker"
    for end in chat["ends"]:
        if end["kind"] not in KINDS:
            yield f"kind {end['kind']!r}: use one of {sorted(KINDS)}"
        if end["older"]["turn"] >= end["newer"]["turn"]:
            yield f"turn {end['older']['turn']} is not before {end['newer']['turn']}"
        yield from _missing(turns, end["older"])
        yield from _missing(turns, end["newer"])
    for kept in chat["stays"]:
        yield from _missing(turns, kept)
    for question in chat["questions"]:
        if question["view"] not in VIEWS:
            yield f"view {question['view']!r}: use one of {sorted(VIEWS)}"
        for number in (*question["evidence"], *question["stale"]):
            if not 0 <= number < len(turns):
                yield f"no turn {number}"
        if not question["evidence"]:
            yield f"no evidence for {question['question']!r}"


def _missing(turns: list[dict[str, Any]], place: dict[str, Any]) -> Iterator[str]:
    if not 0 <= place["turn"] < len(turns):
        yield f"no turn {place['turn']}"
    elif place["quote"] not in turns[place["turn"]]["text"]:
        yield f"turn {place['turn']} does not contain {place['quote']!r}"


def main(paths: list[str]) -> int:
    """Checks files, prints faults and counts, and returns 1 if there is a fault."""
    bad = 0
    counts: Counter[str] = Counter()
    ids: set[str] = set()
    for path in paths:
        for number, line in enumerate(Path(path).read_text().splitlines(), 1):
            try:
                chat = json.loads(line)
                found = list(faults(chat))
            except (ValueError, KeyError, TypeError) as error:
                chat, found = {}, [f"{type(error).__name__}: {error}"]
            if chat.get("id") in ids:
                found.append(f"id {chat['id']!r} is used twice")
            ids.add(chat.get("id", ""))
            for fault in found:
                print(f"{path}:{number}: {fault}")
            bad += bool(found)
            counts["conversations"] += 1
            for name in ("turns", "ends", "stays", "questions"):
                counts[name] += len(chat.get(name, ()))
            counts[f"setting {chat.get('setting')}"] += 1
    print(dict(counts))
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
