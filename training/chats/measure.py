"""Measures a judge on the written conversations, claim by claim.

    python -m training.chats.measure [--files 'b*.jsonl'] [--out SCORES.jsonl]

Every conversation becomes a memory, which is judged ahead. Of each claim that the detector finds,
the highest score against it counts. A claim is outdated if it overlaps the older quote of an end,
else it is true. Prints, for several thresholds, which share of the outdated quotes goes and which
share of the true claims stays, and how fast turns were judged.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from training.chats.check import CHATS

from gcmem import Memory, Settings, Turn
from gcmem.types import ChunkFilter, Span

THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The highest score against a claim, or against a quote that a conversation calls outdated."""

    chat: str
    kind: str
    """true, stays, or the kind of the end."""
    text: str
    newer: str
    score: float
    is_claim: bool


def measure(chat: dict[str, Any]) -> Iterator[Scored]:
    """Judges one conversation and yields the score of every claim and every outdated quote."""
    with Memory(":memory:", settings=Settings(judge="manual", max_future=None)) as memory:
        turns = [
            Turn(
                text=turn["text"],
                at=datetime.fromisoformat(turn["at"]),
                speaker=turn["speaker"],
                metadata={"turn": n},
            )
            for n, turn in enumerate(chat["turns"])
        ]
        chunks = {chunk.id: chunk for chunk in memory.add(turns, user_id="u")}
        memory.judge()
        assert memory.store.ledger is not None
        against: dict[tuple[int, str], tuple[float, str]] = {}
        for verdict in memory.store.ledger.verdicts(list(chunks)):
            older, newer = chunks[verdict.older], chunks[verdict.newer]
            said = older.text[slice(*verdict.older_span)]
            place = older.metadata["turn"], said
            found = verdict.score, newer.text[slice(*verdict.newer_span)]
            against[place] = max(against.get(place, (0.0, "")), found)
        claims = [(c.chunk.metadata["turn"], c.text) for c in memory.judging.claims(ChunkFilter())]
    quotes = {(end["older"]["turn"], end["older"]["quote"]): end["kind"] for end in chat["ends"]}
    stays = [(kept["turn"], kept["quote"]) for kept in chat["stays"]]
    texts = [turn["text"] for turn in chat["turns"]]
    for (turn, quote), kind in quotes.items():
        own = [c for c in claims if c[0] == turn and _overlap(texts[turn], c[1], quote)]
        score, newer = max((against.get(c, (0.0, "")) for c in own), default=(0.0, ""))
        yield Scored(
            chat=chat["id"], kind=kind, text=quote, newer=newer, score=score, is_claim=bool(own)
        )
    for turn, text in claims:
        if any(t == turn and _overlap(texts[t], text, quote) for t, quote in quotes):
            continue
        kept = any(t == turn and _overlap(texts[t], text, quote) for t, quote in stays)
        score, newer = against.get((turn, text), (0.0, ""))
        kind = "stays" if kept else "true"
        yield Scored(chat=chat["id"], kind=kind, text=text, newer=newer, score=score, is_claim=True)


def _overlap(text: str, one: str, other: str) -> bool:
    spans: list[Span] = []
    for piece in (one, other):
        start = text.find(piece)
        spans.append((start, start + len(piece)))
    return min(spans[0][1], spans[1][1]) > max(spans[0][0], spans[1][0])


def report(found: list[Scored]) -> None:
    """Prints what goes and what stays at each threshold."""
    ended = [row for row in found if row.kind not in ("true", "stays")]
    true = np.array([row.score for row in found if row.kind == "true"])
    stays = np.array([row.score for row in found if row.kind == "stays"])
    scores = np.array([row.score for row in ended])
    claims = np.mean([row.is_claim for row in ended])
    print(f"{len(ended)} outdated quotes, {claims:.1%} of them claims")
    print(f"{len(true)} true claims, {len(stays)} look-alikes")
    for threshold in THRESHOLDS:
        print(
            f"from {threshold}: outdated gone {np.mean(scores >= threshold):.1%}, true kept "
            f"{np.mean(true < threshold):.2%}, look-alikes kept {np.mean(stays < threshold):.1%}"
        )


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", default="*.jsonl")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    chats = [
        json.loads(line)
        for file in sorted(CHATS.glob(args.files))
        for line in file.read_text("utf-8").splitlines()
    ]
    started = time.perf_counter()
    found = [row for chat in chats for row in measure(chat)]
    turns = sum(len(chat["turns"]) for chat in chats)
    report(found)
    spent_s = time.perf_counter() - started
    print(f"{turns} turns in {len(chats)} conversations, {turns / spent_s:.1f}/s")
    if args.out is not None:
        args.out.write_text("\n".join(json.dumps(asdict(row)) for row in found) + "\n")


if __name__ == "__main__":
    main()
